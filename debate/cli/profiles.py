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
    as_yaml: Annotated[
        bool,
        typer.Option("--yaml", help="Print the YAML file that it is read from, to make one of your own of it."),
    ] = False,
) -> None:
    """List the built-in profiles, or show one in full.

    Example:
        debate profiles
        debate profiles general
        debate profiles general --yaml
    """
    from debate.cli.console import open_console
    from debate.profiles import load_profile, profile_names

    if as_yaml:
        _print_file(profile)
        return
    if profile is not None:
        _show(open_console(), load_profile(profile))
        return
    console = open_console()
    for each in [load_profile(name) for name in profile_names()]:
        _summarize(console, each)
    console.print("`debate profiles NAME` shows one in full, and with --yaml its file.", style="dim")
    console.print("`debate run --profile NAME` uses it, and --profile mine.yaml one of yours.", style="dim")


def _print_file(profile: str | None) -> None:
    """Print a profile as the YAML that it is read from."""
    from debate.cli.console import say
    from debate.errors import InputError
    from debate.profiles import load_profile, profile_file, profile_names

    if profile is None:
        raise InputError("prints one profile: name it", field="--yaml", hint=f"one of {', '.join(profile_names())}")
    load_profile(profile)  # what is not valid is told, not printed
    say(*profile_file(profile).read_text(encoding="utf-8").splitlines())


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

    settings = {"model": persona.model or ""}
    settings["sampling"] = ", ".join(f"{name} {value:g}" for name, value in persona.sampling.to_dict().items())
    if persona.agreement is not None:
        settings["agreement"] = f"{persona.agreement} of 10"
    if (memory := persona.memory) is not None:
        limit = f", at most {memory.max_tokens} tokens" if memory.max_tokens else ""
        settings["memory"] = f"{memory.k} from {', '.join(memory.collections) or 'its own collection'}{limit}"
    for name, value in settings.items():
        if value:
            console.print(block(f"{name}: {value}", style="dim"))
