"""`debate profiles`: the built-in profiles, and all of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from debate.profiles import Persona, Profile


def profiles(
    profile: Annotated[
        str | None, typer.Argument(metavar="NAME|PATH", help="A built-in profile, or a YAML file, to show in full.")
    ] = None,
) -> None:
    """List the built-in profiles, or show one in full.

    Example:
        debate profiles
        debate profiles general
        debate profiles ./my_profile.yaml
    """
    from debate.cli.console import open_console
    from debate.profiles import load_profile, profile_names

    if profile is not None:
        _show(open_console(), load_profile(profile))
        return
    loaded = [load_profile(name) for name in profile_names()]
    console = open_console()
    for each in loaded:
        _summarize(console, each)
    console.print("`debate profiles NAME` shows one in full; --profile NAME or --profile PATH uses it.", style="dim")


def _summarize(console: Console, profile: Profile) -> None:
    """Print name, description, agents and components."""
    from debate.cli.console import block, key_value_grid, line

    console.print(line(profile.name, "bold"))
    if profile.description:
        console.print(block(profile.description))
    grid = key_value_grid()
    grid.add_row("  agents", line(", ".join(persona.name for persona in profile.personas)))
    grid.add_row("  components", line(", ".join(component.name for component in profile.components)))
    console.print(grid)
    console.print()


def _show(console: Console, profile: Profile) -> None:
    from debate.cli.console import block, line, section, table

    console.print(line(profile.name, "bold"))
    if profile.description:
        console.print(block(profile.description, indent=0))
    console.print(section("Components"))
    made = table("name", "weight", "description", right=(1,))
    for component in profile.components:
        made.add_row(line(component.name), line(f"{component.weight:g}"), line(component.description))
    console.print(made)
    console.print(section("Agents"))
    for persona in profile.personas:
        console.print(line(persona.name, "bold"))
        console.print(block(persona.role))
        _show_settings(console, persona)


def _show_settings(console: Console, persona: Persona) -> None:
    """Print what the persona sets for itself."""
    from debate.cli.console import block

    memory = persona.memory
    settings = {
        "model": persona.model,
        "sampling": ", ".join(f"{name} {value:g}" for name, value in persona.sampling.to_dict().items()) or None,
        "agreement": None if persona.agreement is None else f"{persona.agreement} of 10",
        "memory": None
        if memory is None
        else f"{memory.k} from {', '.join(memory.collections) or 'its own collection'}"
        + (f", at most {memory.max_tokens} tokens" if memory.max_tokens else ""),
    }
    for name, value in settings.items():
        if value is not None:
            console.print(block(f"{name}: {value}", style="dim"))
