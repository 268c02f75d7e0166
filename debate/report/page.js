// What every page of evaluations has: the list, one evaluation, and the address, which says what is shown. Everything that
// comes from a run reaches the page as text, never as markup.
//
// Before it stands CELL_SCALE, the scale of an agent's scores, which that of a candidate's score may differ from.
// The file that stands behind this one has the data, in functions of its own:
//   select(of)      the places of the rows to show        record(id)   one evaluation with its task, or null
//   countText(of)   how many there are                    more()       is called when the end of the list is near
//   levels(group)   the levels of a search over thoughts, each with its task's id, its thoughts and their parents
//   hasPrompts()    whether prompts(id, run) has what was sent about a task: { calls, problem }
  const ROW = 32, AROUND = 12;
  const byId = (id) => document.getElementById(id);

  // ---- building the page

  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      made.setAttribute(name, value === true ? "" : String(value));
    }
    for (const child of children.flat()) {
      if (child !== null && child !== undefined) made.append(child instanceof Node ? child : visible(String(child)));
    }
    return made;
  }

  // What turns the writing direction or cannot be seen is written out, as the terminal does.
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ud800-\udfff]/gu;
  const visible = (text) =>
    text.replace(/\r\n/g, "\n").replace(HIDDEN, (found) => "\\u" + found.codePointAt(0).toString(16).padStart(4, "0"));

  const numeral = (value, digits = 2) => (value === null || value === undefined ? "-" : Number(value).toFixed(digits));
  const plain = (value) => (value === null || value === undefined ? "-" : String(Math.round(value * 100) / 100));
  const named = (candidates) => (candidates.length ? candidates.map((j) => j + 1).join(", ") : "-");
  // A long text is cut until it is asked for, because a browser lays out a line of a million letters slowly.
  const LONG = 20000;

  function words(tag, attributes, text) {
    if (text.length <= LONG) return make(tag, attributes, text);
    const more = make("button", { type: "button", class: "link" }, `show all ${text.length.toLocaleString("en")} characters`);
    const shortened = make(tag, attributes, text.slice(0, LONG), "… ", more);
    more.addEventListener("click", () => shortened.replaceChildren(visible(text)));
    return shortened;
  }

  const folded = (title, ...content) => make("details", null, make("summary", null, title), ...content);

  let columns, filters, size = 0, runs = [];

  // ---- what is shown is what the address says

  const SORTS = { change: "lost first, then won", position: "order of the eval set", id: "task", score: "score, lowest first", margin: "margin, smallest first",
    cv: "CV, largest first", rounds: "rounds, most first", tokens: "tokens, most first" };
  const FALLING = new Set(["cv", "rounds", "tokens"]);

  const OTHERS = { run: "run", start: "n" };  // of a page that a server sends

  // What a select narrows the table by: its letter in the address, and how a value of its column is read.
  const CHOICES = { group: ["g", (value) => value || "none"], stop: ["e", (value) => value], rounds: ["r", (value) => (value === "0" ? "none" : value)] };

  const usual = () => (runs.length > 1 ? "change" : "position");

  function state() {
    const given = new URLSearchParams(location.hash.slice(1));
    const choices = Object.fromEntries(Object.entries(CHOICES).map(([name, [letter]]) => [name, given.get(letter)]));
    return { search: given.get("q") || "", choices, sort: given.get("s") || usual(),
      filters: new Set((given.get("f") || "").split(",").filter(Boolean)), task: given.get("t"),
      ...Object.fromEntries(Object.entries(OTHERS).map(([name, key]) => [name, given.get(key)])) };
  }

  function address(of) {
    const made = new URLSearchParams();
    for (const [name, key] of Object.entries(OTHERS)) if (of[name] !== null && of[name] !== undefined) made.set(key, of[name]);
    if (of.search) made.set("q", of.search);
    for (const [name, [letter]] of Object.entries(CHOICES)) if (of.choices[name] !== null) made.set(letter, of.choices[name]);
    if (of.sort !== usual()) made.set("s", of.sort);
    if (of.filters.size) made.set("f", [...of.filters].join(","));
    if (of.task !== null) made.set("t", of.task);
    return "#" + made.toString();
  }

  const isNarrowed = (of) => of.search || of.filters.size || of.sort !== usual() || Object.values(of.choices).some((value) => value !== null);

  function change(to) {
    const next = { ...state(), ...to };
    history.replaceState(null, "", address(next));
    draw();
  }

  // ---- the list

  let shown = [], active = 0;

  const ONE_RUN = [["task", (n) => columns.id[n]], ["input", (n) => columns.text[n]], ["group", (n) => columns.group[n]],
    ["chosen", (n) => named(columns.chosen[n])], ["label", (n) => (columns.best[n].length ? named(columns.best[n]) : "")],
    ["verdict", (n) => columns.verdict[n], (n) => columns.verdict[n]], ["score", (n) => numeral(columns.score[n]), () => "number"],
    ["margin", (n) => numeral(columns.margin[n]), () => "number"], ["CV", (n) => numeral(columns.cv[n]), () => "number"],
    ["rounds", (n) => columns.rounds[n] || "-", () => "number"], ["stopped", (n) => columns.stop[n]]];
  const TWO_RUNS = [...ONE_RUN.slice(0, 6), ["second", (n) => named(columns.other[n])],
    ["verdict", (n) => columns.other_verdict[n], (n) => columns.other_verdict[n]],
    ["change", (n) => columns.change[n], (n) => ({ lost: "wrong", won: "right" })[columns.change[n]]],
    ["score", (n) => numeral(columns.score[n]), () => "number"], ["stopped", (n) => columns.stop[n]]];
  const cells = () => (runs.length > 1 ? TWO_RUNS : ONE_RUN);

  function drawRows() {
    const rows = byId("rows"), first = Math.max(0, Math.floor(rows.scrollTop / ROW) - AROUND);
    const last = Math.min(shown.length, Math.ceil((rows.scrollTop + rows.clientHeight) / ROW) + AROUND);
    const drawn = [];
    for (let place = first; place < last; place++) {
      const n = shown[place];
      const row = make("div", { class: "row", role: "option", id: "row-" + place, "aria-setsize": shown.length,
        "aria-posinset": place + 1, "aria-selected": place === active ? "true" : "false" },
        cells().map(([, text, style]) => make("span", { class: style ? style(n) || null : null }, text(n))));
      row.style.top = place * ROW + "px";
      row.addEventListener("click", () => open(place));
      drawn.push(row);
    }
    byId("space").style.height = shown.length * ROW + "px";
    rows.replaceChildren(byId("space"), ...drawn);
    if (shown.length) rows.setAttribute("aria-activedescendant", "row-" + active);
    else rows.removeAttribute("aria-activedescendant");
    if (last + AROUND >= shown.length) more();
  }

  function move(to) {
    active = Math.max(0, Math.min(shown.length - 1, to));
    const rows = byId("rows"), top = active * ROW;
    if (top < rows.scrollTop) rows.scrollTop = top;
    if (top + ROW > rows.scrollTop + rows.clientHeight) rows.scrollTop = top + ROW - rows.clientHeight;
    drawRows();
  }

  function open(place) {
    active = place;
    location.hash = address({ ...state(), task: columns.id[shown[place]] });
  }

  const PAGE = 20;
  const KEYS = { ArrowDown: () => active + 1, ArrowUp: () => active - 1, PageDown: () => active + PAGE,
    PageUp: () => active - PAGE, Home: () => 0, End: () => shown.length - 1 };

  function drawList(of) {
    shown = select(of);
    active = Math.max(0, Math.min(active, shown.length - 1));
    byId("count").textContent = countText(of);
    if (byId("search").value !== of.search) byId("search").value = of.search;
    for (const name of Object.keys(CHOICES)) byId(name).value = of.choices[name] === null ? "*" : "=" + of.choices[name];
    byId("sort").value = of.sort;
    for (const box of byId("filters").querySelectorAll("input")) box.checked = of.filters.has(box.value);
    drawRows();
  }

  // ---- one evaluation

  const STOPPED = { settled: "a silent round left no doubt", silent: "only a silent round was asked for", converged: "the agents agree", stop_rule: "its stop rule holds", max_rounds: "all rounds were taken",
    abstained: "every agent abstained", failed: "it failed", token_budget: "its tokens were used up",
    time_budget: "its time was used up" };

  const heatOf = (value, scale) => {
    if (value === null || scale.high === null) return "none";
    const share = (value - scale.low) / (scale.high - scale.low);
    return "h" + Math.max(0, Math.min(10, Math.round((scale.higher_is_better ? share : 1 - share) * 10)));
  };

  function verdictLine(chosen, best, verdict) {
    const parts = [chosen.length ? (chosen.length > 1 ? `candidates ${named(chosen)} tie` : `candidate ${named(chosen)} is chosen`)
      : "nothing is chosen"];
    if (best.length) parts.push(`people say ${named(best)}`);
    const line = make("p", null, parts.join("; "));
    if (verdict) line.append(": ", make("strong", { class: verdict }, verdict));
    return line;
  }

  function stopLine(evaluation) {
    const told = [];
    if (evaluation.rounds_run) told.push(`${evaluation.rounds_run} round${evaluation.rounds_run > 1 ? "s" : ""}`);
    if (evaluation.stop_reason) told.push(`stopped because ${STOPPED[evaluation.stop_reason] || evaluation.stop_reason}`);
    if (evaluation.order_agreement === false) told.push("the two orders of the candidates do not agree");
    if (evaluation.error) told.push(evaluation.error);
    const used = evaluation.usage;
    if (used && used.calls) told.push(`${used.calls} calls, ${used.prompt_tokens + used.completion_tokens} tokens`);
    return make("p", { class: "soft" }, told.join("; "));
  }

  // The scores by round, agent, candidate and component; of a task that was settled without a debate, the silent round.
  const tensorOf = (evaluation) => evaluation.tensor
    || (["settled", "silent"].includes(evaluation.stop_reason) && evaluation.before ? [evaluation.before.map((read) => read.scores)] : null);
  const roundName = (evaluation, r) => evaluation.tensor ? `Round ${r + 1}` : "Silent round";

  // The mean score of each agent in the last round, for one candidate.
  function agentMeans(evaluation, j) {
    const tensor = tensorOf(evaluation);
    if (!tensor || !tensor.length) return [];
    return tensor[tensor.length - 1].map((agent) => {
      const scored = agent[j].filter((value) => value !== null);
      return scored.length ? scored.reduce((a, b) => a + b, 0) / scored.length : null;
    });
  }

  function candidateCard(task, evaluation, best, j) {
    const candidate = task.candidates[j] || { text: "" };
    const isChosen = evaluation.selected === j, marks = [];
    if (isChosen) marks.push("chosen");
    if (best.includes(j)) marks.push("right by the label");
    if (evaluation.tied.includes(j)) marks.push("tied");
    const means = agentMeans(evaluation, j).filter((value) => value !== null);
    const low = plain(Math.min(...means)), high = plain(Math.max(...means));
    const spread = means.length < 2 ? null : low === high ? `each agent ${low}` : `agents from ${low} to ${high}`;
    const score = evaluation.scores[j];
    const told = [score === null ? "not scored" : `score ${numeral(score)}`];
    if (evaluation.statuses && evaluation.statuses[j] && evaluation.statuses[j] !== "ok") told.push(evaluation.statuses[j]);
    if (score !== null) told.push(`probability ${numeral(evaluation.probabilities[j])}`);
    if (spread) told.push(spread);
    return make("div", { class: isChosen ? "card chosen" : "card" },
      make("h4", null, `Candidate ${j + 1}`, marks.length ? ": " + marks.join(", ") : ""),
      candidate.generator ? make("p", { class: "soft" }, `by ${candidate.generator}`) : null,
      words("pre", { tabindex: 0 }, candidate.text), make("p", null, told.join("; ")), heatMap(evaluation, j));
  }

  function heatMap(evaluation, j) {
    const tensor = tensorOf(evaluation), components = evaluation.components;
    if (!tensor || !tensor.length || !components.length) return null;
    const bodies = tensor.map((round, r) => make("tbody", null,
      make("tr", null, make("th", { scope: "rowgroup", colspan: components.length + 1 }, roundName(evaluation, r))),
      round.map((agent, i) => make("tr", null, make("th", { scope: "row" }, evaluation.agents[i]),
        agent[j].map((value) => make("td", { class: "heat " + heatOf(value, CELL_SCALE) }, plain(value)))))));
    const head = make("tr", null, make("th", { scope: "col" }, "agent"), components.map((name) => make("th", { scope: "col" }, name)));
    const scores = folded("Scores by round and agent", make("div", { class: "scroll", tabindex: 0, role: "region",
      "aria-label": `scores of candidate ${j + 1}` }, make("table", { class: "scores" }, make("thead", null, head), bodies)));
    scores.open = true;
    return scores;
  }

  // Where the last round left the candidates: the mean of its agents, by component.
  function settled(evaluation) {
    const tensor = evaluation.tensor, components = evaluation.components;
    if (!tensor || !tensor.length || components.length < 2) return null;
    const last = tensor[tensor.length - 1];
    const body = evaluation.scores.map((_, j) => make("tr", null, make("th", { scope: "row" }, `Candidate ${j + 1}`), components.map((_, k) => {
      const scored = last.map((agent) => agent[j][k]).filter((value) => value !== null);
      const mean = scored.length ? scored.reduce((a, b) => a + b, 0) / scored.length : null;
      return make("td", { class: "heat " + heatOf(mean, CELL_SCALE) }, mean === null ? "-" : numeral(mean, 1));
    })));
    const head = make("tr", null, make("th", { scope: "col" }, "candidate"), components.map((name) => make("th", { scope: "col" }, name)));
    return [make("h3", null, "Where the last round left them, mean of the agents"), make("div", { class: "scroll", tabindex: 0, role: "region",
      "aria-label": "scores of the last round by component" }, make("table", { class: "scores" }, make("thead", null, head), make("tbody", null, body)))];
  }

  function scoreParts(turn, before, j, components) {
    const parts = [];
    components.forEach((name, k) => {
      const value = turn.scores[j] ? turn.scores[j][k] : null, was = before && before.scores[j] ? before.scores[j][k] : null;
      const part = make("span", null, `${parts.length ? ", " : ""}${name} ${plain(value)}`);
      if (value !== null && was !== null && value !== was) {
        const step = value - was;
        part.append(" ", make("span", { class: step > 0 ? "up" : "down" }, `(${step > 0 ? "+" : "−"}${plain(Math.abs(step))})`));
      }
      parts.push(part);
    });
    return parts;
  }

  // ---- a search over thoughts: each of its levels is a task, whose candidates go on from thoughts of the one before

  function searchTree(task, taskId) {
    const about = task.metadata && task.metadata.search;
    if (!about || !task.metadata.group) return [];
    const place = make("div", { class: "tree" }, make("p", { class: "soft" }, "reading the search"));
    levels(task.metadata.group).then((found) => place.replaceChildren(...treeParts(found, taskId)))
      .catch((error) => place.replaceChildren(make("p", { class: "failed" }, error.message)));
    return [make("h3", null, "The search that this level is of"), place];
  }

  function treeParts(found, taskId) {
    const below = new Map(), there = new Set(found.flatMap((level) => level.texts.map((_, j) => `${level.id}/${j}`)));
    for (const level of found) {
      level.texts.forEach((text, j) => {
        const parent = level.parents[j] !== null && there.has(level.parents[j]) ? level.parents[j] : "";
        if (!below.has(parent)) below.set(parent, []);
        below.get(parent).push({ level, j, rank: level.kept.indexOf(j) });
      });
    }
    const thoughts = there.size, kept = found.reduce((sum, level) => sum + level.kept.length, 0);
    const told = `${found.length} level${found.length > 1 ? "s" : ""}, ${thoughts} thoughts, ${kept} of them kept; this level is marked`;
    return [make("p", { class: "soft" }, told), branches(below, "", "", taskId)];
  }

  // Those that were kept, best first, and folded behind them those that were not gone on with.
  function branches(below, parent, before, taskId) {
    const all = below.get(parent) || [];
    const kept = all.filter((each) => each.rank >= 0).sort((a, b) => a.rank - b.rank), pruned = all.filter((each) => each.rank < 0);
    const drawn = (each) => thoughtOf(each, below, before, taskId);
    if (!all.length) return null;
    const rest = pruned.length ? make("li", null, folded(`${pruned.length} pruned`, make("ul", null, pruned.map(drawn)))) : null;
    return make("ul", null, kept.map(drawn), rest);
  }

  function thoughtOf({ level, j, rank }, below, before, taskId) {
    const text = level.texts[j], added = (text.startsWith(before) ? text.slice(before.length) : text).trim() || text;
    const said = level.scores[j] === null ? "not scored" : rank >= 0 ? `kept, ${rank + 1} of its level` : "pruned";
    const link = make("a", { href: address({ ...state(), task: level.id }), "aria-current": level.id === taskId ? "true" : null }, added);
    return make("li", { class: rank >= 0 ? "kept" : "pruned" }, link, " ",
      make("span", { class: "worth heat " + heatOf(level.scores[j], level.scale) }, numeral(level.scores[j])), " ", make("span", { class: "soft" }, said),
      branches(below, `${level.id}/${j}`, text, taskId));
  }

  // ---- what was sent, shown when it is asked for

  function sentCall(call) {
    const about = [`call ${call.call} to ${call.model}`, ...["round", "attempt", "sample", "candidate", "step"]
      .filter((name) => call.about[name] !== undefined && (name !== "attempt" || call.about[name]))
      .map((name) => `${name} ${call.about[name] + 1}`)];
    for (const name of ["agent", "moment"]) if (call.about[name]) about.push(`${name} ${call.about[name]}`);
    return [make("p", { class: "soft" }, about.join(", ")), call.problem ? make("p", { class: "failed" }, call.problem) : null,
      call.messages.map((message) => [make("p", { class: "soft" }, message.role), words("pre", { tabindex: 0 }, message.content)])];
  }

  const UNKNOWN = "Which call this was cannot be told. All prompts stand at the end of this page.";

  // A button that shows the calls which `choose` picks out of all that were made for the task in one of the runs.
  function promptButton(title, run, choose) {
    if (!hasPrompts()) return null;
    const button = make("button", { type: "button", class: "link", "aria-expanded": "false" }, title), place = make("div", { class: "sent" });
    button.addEventListener("click", async () => {
      const isOpen = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!isOpen));
      if (isOpen) return place.replaceChildren();
      try {
        const { calls, problem } = await prompts(state().task, run), chosen = problem ? [] : choose(calls);
        place.replaceChildren(...(chosen.length ? chosen.flatMap((call) => sentCall(call).flat(2)).filter(Boolean)
          : [make("p", { class: "failed" }, problem || UNKNOWN)]));
      } catch (error) {
        place.replaceChildren(make("p", { class: "failed" }, error.message));
      }
    });
    return make("div", { class: "prompt" }, button, place);
  }

  // The calls of a part of an evaluation; those of a member begin with its place among those that ran beside it, behind
  // the number of what ran side by side before: a silent round of a balanced debate comes before its two debates.
  function callsOf(path, fits) {
    const isWithin = (parts) => path.every((n, depth) => parts[2 * depth + 1] === String(n));
    return (calls) => calls.filter((call) => isWithin(call.call.split(".")) && fits(call.about));
  }

  const isOfTurn = (turn) => (about) => about.round === turn.round && about.agent === turn.agent && !about.moment;

  // The candidates that a judge of a cross evaluation was shown, by which its calls count; null for all.
  function shownTo(evaluation, n) {
    const judgements = (evaluation.details || {}).judgements, judges = judgesOf(evaluation);
    return judges.length ? judgements.filter((each) => each.judge === judges[n]).map((each) => each.candidate) : null;
  }

  function judgesOf(evaluation) {
    const judgements = (evaluation.details || {}).judgements;
    const judges = Array.isArray(judgements) ? [...new Set(judgements.map((each) => each.judge))] : [];
    return judges.length === evaluation.members.length ? judges : [];
  }

  const isOfJudgment = (judgment, shown) => (about) => ["sample", "step"].every((name) => about[name] === undefined || about[name] === judgment[name]) &&
    (about.candidate === undefined || judgment.candidates.includes(shown ? shown[about.candidate] : about.candidate)) &&
    (about.labels === undefined || Object.values(about.labels).map((j) => (shown ? shown[j] : j)).join() === judgment.candidates.join());

  function turnOf(turn, before, components, of) {
    const said = make("section", { class: "turn" }, make("h5", null, turn.agent));
    if (turn.failure) said.append(make("p", { class: "failed" }, `No reply could be read: ${turn.failure.message} (${turn.failure.reason})`));
    if (turn.overall) said.append(words("p", null, turn.overall));
    const list = make("ul");
    for (const [label, j] of Object.entries(turn.labels)) {
      if (turn.failure && !turn.comments[j]) continue;
      list.append(make("li", null, make("strong", null, `Candidate ${j + 1} (${label})`), turn.comments[j] ? ": " : " ", words("span", null, turn.comments[j] || ""), " ",
        make("span", { class: "soft" }, "[", scoreParts(turn, before, j, components), "]")));
    }
    if (list.children.length) said.append(list);
    if (turn.thinking) said.append(folded("Thinking", words("pre", { tabindex: 0 }, turn.thinking)));
    if (turn.memories.length) {
      said.append(folded(`${turn.memories.length} memories recalled`, make("ul", null, turn.memories.map((memory) =>
        make("li", null, memory.text, make("span", { class: "soft" }, ` (${memory.kind || "memory"}, ${numeral(memory.score)})`))))));
    }
    if (turn.invalid_replies.length) {
      said.append(folded(`${turn.invalid_replies.length} replies that could not be read`, turn.invalid_replies.map((reply) =>
        [make("p", null, `${reply.message} (${reply.reason})`), words("pre", { tabindex: 0 }, reply.text)])));
    }
    said.append(...[promptButton("Prompt", of.run, callsOf(of.path, isOfTurn(turn)))].filter(Boolean));
    return said;
  }

  function conversation(evaluation, of) {
    const parts = [], before = new Map(), rounds = new Map();
    for (const turn of evaluation.transcript) {
      if (!rounds.has(turn.round)) rounds.set(turn.round, []);
      rounds.get(turn.round).push(turn);
    }
    for (const [round, turns] of rounds) {
      const cv = evaluation.cv[round];
      parts.push(make("h4", null, `Round ${round + 1}`, cv === null || cv === undefined ? "" : make("span", { class: "soft" }, ` CV ${numeral(cv, 3)}`)));
      for (const turn of turns) {
        parts.push(turnOf(turn, before.get(turn.agent), evaluation.components, of));
        if (!turn.failure) before.set(turn.agent, turn);
      }
    }
    return parts;
  }

  function judgmentOf(judgment, of) {
    const about = `Candidate${judgment.candidates.length > 1 ? "s" : ""} ${named(judgment.candidates)}` +
      (judgment.step === null || judgment.step === undefined ? "" : `, step ${judgment.step + 1}`) + (judgment.sample ? `, sample ${judgment.sample + 1}` : "");
    const told = [];
    if (judgment.value !== null && judgment.value !== undefined) told.push(`value ${plain(judgment.value)}`);
    if (judgment.ranking && judgment.ranking.length) told.push(`ranks ${judgment.ranking.map((j) => j + 1).join(" > ")}`);
    return make("section", { class: "turn" }, make("h5", null, about), told.length ? make("p", null, make("strong", null, told.join("; "))) : null,
      judgment.failure ? make("p", { class: "failed" }, `${judgment.failure.message} (${judgment.failure.reason})`) : null,
      judgment.text ? words("p", null, judgment.text) : null,
      promptButton("Prompt", of.run, callsOf(of.path, isOfJudgment(judgment, of.shown))));
  }

  function firstErrors(evaluation) {
    const found = evaluation.details && evaluation.details.first_error;
    if (!Array.isArray(found)) return null;
    const told = (step) => (step === null ? "its steps were not all judged" : step < 0 ? "no wrong step found" : `step ${step + 1} is the first wrong one`);
    return make("ul", null, found.map((step, j) => make("li", null, `Candidate ${j + 1}: ${told(step)}`)));
  }

  // A member's name in its panel, or the order in which it showed the candidates.
  function memberName(evaluation, n) {
    const member = evaluation.members[n], details = evaluation.details || {}, turn = member.transcript[0];
    const named = Object.entries(details.members || {}).find(([, place]) => place === n);
    if (named) return `${named[0]} (${member.evaluator})`;
    const judges = judgesOf(evaluation);
    if (judges.length) return `${judges[n]} (${member.evaluator})`;
    return turn ? `${member.evaluator}, candidates shown in the order ${Object.values(turn.labels).map((j) => j + 1).join(", ")}` : `${member.evaluator} ${n + 1}`;
  }

  function membersTable(evaluation) {
    const titles = ["member", "chosen", ...evaluation.scores.map((_, j) => `candidate ${j + 1}`), "ended"];
    const rows = evaluation.members.map((member, n) => make("tr", null, make("th", { scope: "row" }, memberName(evaluation, n)),
      make("td", null, member.selected === null ? "-" : named(member.tied.length ? member.tied : [member.selected])),
      member.scores.map((score) => make("td", { class: "heat " + heatOf(score, member.scale) }, numeral(score))),
      make("td", { class: member.status }, member.status === "ok" ? STOPPED[member.stop_reason] || member.stop_reason || "" : member.error || member.status)));
    return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "members" }, make("table", { class: "scores members" },
      make("thead", null, make("tr", null, titles.map((title) => make("th", { scope: "col" }, title)))), make("tbody", null, rows)));
  }

  function asText(value) {
    try {
      return JSON.stringify(value, null, 2);
    } catch (error) {
      return `It cannot be shown: ${error.message}`;
    }
  }

  function evaluationParts(task, evaluation, best, of) {
    const parts = [make("h3", null, "Candidates"), make("div", { class: "cards" }, evaluation.scores.map((_, j) => candidateCard(task, evaluation, best, j)))];
    parts.push(...(settled(evaluation) || []));
    const errors = firstErrors(evaluation);
    if (errors) parts.push(errors);
    if (evaluation.transcript.length) parts.push(make("h3", null, "Debate"), ...conversation(evaluation, of));
    if (evaluation.judgments.length) parts.push(make("h3", null, "Replies of the judge"), ...evaluation.judgments.map((each) => judgmentOf(each, of)));
    if (evaluation.failures.length) {
      parts.push(make("h3", null, "What failed"), make("ul", null, evaluation.failures.map((failure) =>
        make("li", { class: "failed" }, `${failure.agent ? failure.agent + ": " : ""}${failure.message} (${failure.reason})`))));
    }
    if (evaluation.members.length) parts.push(make("h3", null, "Made from"), membersTable(evaluation));
    evaluation.members.forEach((member, n) => {
      parts.push(folded(memberName(evaluation, n), stopLine(member), ...evaluationParts(task, member, best, { ...of, path: [...of.path, n], shown: shownTo(evaluation, n) || of.shown })));
    });
    if (evaluation.details && Object.keys(evaluation.details).length) {
      parts.push(folded("Further details", words("pre", { tabindex: 0 }, asText(evaluation.details))));
    }
    return parts;
  }

  function taskParts(task) {
    const parts = [make("h3", null, "Input"), words("pre", { tabindex: 0 }, task.x)];
    if (task.reference) parts.push(folded("Reference answer", words("pre", { tabindex: 0 }, task.reference)));
    if (task.context && task.context.length) parts.push(folded("Context", task.context.map((text) => words("pre", { tabindex: 0 }, text))));
    return parts;
  }

  function side(task, evaluation, chosen, best, verdict, between, run = 0) {
    return [verdictLine(chosen, best, verdict), stopLine(evaluation), ...between, ...(run ? [] : searchTree(task, evaluation.task_id)), ...evaluationParts(task, evaluation, best, { run, path: [] }),
      promptButton("All prompts", run, (calls) => calls)].filter(Boolean);
  }

  function sides({ task, evaluation, other, row }) {
    const shown = [[evaluation, row.chosen, row.verdict], [other, row.other, row.other_verdict]];
    return [...taskParts(task), make("div", { class: "sides" }, shown.map(([evaluation, chosen, verdict], run) =>
      make("section", null, make("h3", null, runs[run]), side(task, evaluation, chosen, row.best, verdict, [], run))))];
  }

  // A link that shows this task alone, without what narrows the list.
  function copyLink(id) {
    const button = make("button", { type: "button" }, "Copy link"), link = new URL("#" + new URLSearchParams({ ...(state().run ? { run: state().run } : {}), t: id }), location.href).href;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(link);
        button.textContent = "Copied";
      } catch {
        location.replace(link); // the address bar has it
      }
    });
    return button;
  }

  async function drawDetail(of) {
    const found = await record(of.task), detail = byId("detail");
    if (state().task !== of.task) return;
    const back = make("a", { href: address({ ...of, task: null }) }, "Back to the list");
    if (found === null) {
      detail.replaceChildren(make("p", null, back), make("h2", null, MISSING[0]), make("p", null, of.task), make("p", null, MISSING[1]));
      return;
    }
    const { task, evaluation, other, row } = found, place = shown.findIndex((n) => columns.id[n] === of.task), links = [back];
    if (place > 0) links.push(" · ", make("a", { href: address({ ...of, task: columns.id[shown[place - 1]] }), rel: "prev" }, "previous"));
    if (place >= 0 && place + 1 < shown.length) links.push(" · ", make("a", { href: address({ ...of, task: columns.id[shown[place + 1]] }), rel: "next" }, "next"));
    links.push(" · ", copyLink(of.task));
    detail.replaceChildren(make("nav", { "aria-label": "Tasks" }, links), make("h2", null, of.task),
      ...(other ? sides(found) : side(task, evaluation, row.chosen, row.best, row.verdict, taskParts(task))));
    if (place >= 0) active = place;
    detail.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  // ---- the whole

  let wasOpen = null;

  function draw() {
    const of = state();
    drawList(of);
    const isOpen = of.task !== null;
    byId("overview").hidden = isOpen;
    byId("list").hidden = isOpen;
    byId("detail").hidden = !isOpen;
    if (isOpen) drawDetail(of);
    else {
      byId("detail").replaceChildren();
      drawRows();
      if (wasOpen) { move(active); byId("rows").focus(); byId("list").scrollIntoView(); }
      else if (isNarrowed(of) && wasOpen === null) byId("list").scrollIntoView();
    }
    wasOpen = isOpen;
  }

  function listen() {
    byId("search").addEventListener("input", () => change({ search: byId("search").value }));
    for (const name of Object.keys(CHOICES)) {
      byId(name).addEventListener("change", () =>
        change({ choices: { ...state().choices, [name]: byId(name).value === "*" ? null : byId(name).value.slice(1) } }));
    }
    byId("sort").addEventListener("change", () => change({ sort: byId("sort").value }));
    byId("filters").addEventListener("change", () =>
      change({ filters: new Set([...byId("filters").querySelectorAll("input:checked")].map((box) => box.value)) }));
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    byId("rows").addEventListener("scroll", drawRows);
    byId("rows").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && shown.length) open(active);
      else if (KEYS[event.key]) move(KEYS[event.key]());
      else return;
      event.preventDefault();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && state().task !== null) location.hash = address({ ...state(), task: null });
    });
    window.addEventListener("hashchange", () => {
      const of = state();
      draw();
      if (of.task === null && isNarrowed(of)) byId("list").scrollIntoView();
    });
    window.addEventListener("resize", drawRows);
  }
