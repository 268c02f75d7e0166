  // ---- the data of a view: a server sends them, page by page

  const PAGE_ROWS = 100, MOST_ROWS = 1000, SOON = 2000, LATER = 10000;
  const MISSING = ["There is no such task", "The run has no evaluation of it, or none yet."];
  const NOTHING = { id: [] };
  let firstRun = "", listed = [], counts = null, figures = null, counting = null, done = null, wanted = null, isEnd = false, isLoading = false;
  let after = -1, isLookedUp = false;  // where the next page begins; whether the task that is searched for by its whole id was asked for
  columns = NOTHING;

  async function get(what, query) {
    const answer = await fetch(`api/${what}?${new URLSearchParams(query)}`, { cache: "no-store" });
    const found = await answer.json();
    if (answer.status === 404 && what === "one") return null;
    if (!answer.ok) throw new Error(found.error || `the server answers ${answer.status}`);
    byId("problem").textContent = "";
    return found;
  }

  const tell = (error) => { byId("problem").textContent = visible(String(error.message || error)); };
  const runOf = (of) => of.run || firstRun;
  const many = (count) => Number(count).toLocaleString("en");

  async function record(taskId) {
    try {
      return await get("one", { run: runOf(state()), task: taskId });
    } catch (error) {
      tell(error);
      return null;
    }
  }

  const levels = (group) => get("search", { run: runOf(state()), g: group });
  const hasPrompts = () => true;
  const prompts = (taskId) => get("prompts", { run: runOf(state()), task: taskId });

  // What the list is asked for; an answer to another question comes too late.
  function question(of) {
    const asked = { run: runOf(of), f: [...of.filters].join(","), q: of.search };
    if (of.choices.group !== null) asked.g = of.choices.group;
    if (of.choices.stop !== null) asked.x = of.choices.stop;
    if (of.choices.rounds !== null) asked.r = of.choices.rounds;
    return asked;
  }

  const startOf = (of) => Math.max(0, Math.floor(Number(of.start) || 1) - 1) - 1;

  function select(of) {
    const now = JSON.stringify([question(of), startOf(of)]);
    if (now !== wanted) {
      if (wanted === null || JSON.parse(wanted)[0].run !== runOf(of)) follow(of);
      wanted = now;
      [columns, size, active, isEnd, isLoading, after, isLookedUp] = [NOTHING, 0, 0, false, false, startOf(of), false];
      byId("rows").scrollTop = 0;
    }
    if (document.activeElement !== byId("start")) byId("start").value = of.start || "";
    return Array.from({ length: size }, (_, n) => n);
  }

  function countText(of) {
    const all = counts ? ` of ${many(counts.evaluated)} evaluated tasks` : " tasks";
    const isNarrowed = of.filters.size || Object.values(of.choices).some((value) => value !== null) || of.search || of.start;
    if (isLoading && !size) return "asking the store";
    if (isLoading && of.search && size < 2) return "1 task of this id; looking for it in all others";
    return isEnd ? `${many(size)}${isNarrowed ? all : " tasks"}` : `the first ${many(size)}${all}; the next ones come as you go down`;
  }

  // The task whose id is searched for is asked for first, because an index has it; then those whose ids hold the text.
  const part = () => (state().search ? { exact: isLookedUp ? "no" : "yes" } : {});

  async function fetchRows(from, limit, take) {
    const mine = wanted;
    isLoading = true;
    try {
      const found = await get("rows", { ...question(state()), ...part(), after: from, limit });
      if (mine === wanted) take(found);
    } catch (error) {
      if (mine === wanted) isEnd = true;
      tell(error);
    }
    if (mine !== wanted) return;
    isLoading = false;
    if (state().task === null) drawList(state());
  }

  function more() {
    if (isEnd || isLoading || !runOf(state())) return;
    fetchRows(after, PAGE_ROWS, (found) => take(columns, found));
  }

  // What the list has before, and what was found.
  function take(before, found) {
    columns = Object.fromEntries(Object.entries(found.columns).map(([name, column]) => [name, [...(before[name] || []), ...column]]));
    size = columns.id.length;
    const isAll = isLookedUp || !state().search;
    isEnd = isAll && found.is_end;
    if (isAll) after = found.columns.position.at(-1) ?? after;
    isLookedUp = true;
  }

  // Tasks end in any order, so a short list of a run under way is read anew; a long one goes on at its end.
  function refresh() {
    if (isLoading || state().task !== null) return;
    if (size + PAGE_ROWS > MOST_ROWS) {
      isEnd = false;
      drawRows();
      return;
    }
    const kept = columns.id[active];
    const isFirst = isLookedUp && state().search && columns.id[0] === state().search;
    const head = isFirst ? Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column.slice(0, 1)])) : NOTHING;
    fetchRows(startOf(state()), Math.max(size, PAGE_ROWS), (found) => {
      take(head, found);
      active = Math.max(0, kept === undefined ? 0 : columns.id.indexOf(kept));
    });
  }

  // ---- what the judge is worth, worked out when it is asked for

  // What the server makes as it makes a report's, with all that comes from a run escaped; the policy lets nothing in it run.
  // Its links lead to places of this page.
  function asMade(html) {
    const made = new DOMParser().parseFromString(html, "text/html"), run = state().run;
    for (const link of made.querySelectorAll("a")) {
      const given = new URLSearchParams(link.getAttribute("href").slice(1));
      if (given.has("s")) link.replaceWith(...link.childNodes); // the list stands in the order of the tasks alone
      else link.setAttribute("href", "#" + new URLSearchParams([...(run ? [["run", run]] : []), ...given]));
    }
    const texts = document.createTreeWalker(made.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data = visible(texts.currentNode.data);
    return [...made.body.childNodes].map((each) => document.importNode(each, true));
  }

  async function workOut() {
    const run = runOf(state()), note = byId("worth-note"), button = byId("work-out");
    [button.disabled, note.textContent] = [true, "reading all evaluations of the run"];
    try {
      const { html, problem } = await get("worth", { run });
      if (run !== runOf(state())) return;
      byId("worth").replaceChildren(...asMade(html));
      note.textContent = visible(problem || "of the evaluations that are there now");
    } catch (error) {
      if (run === runOf(state())) note.textContent = visible(error.message);
    } finally {
      button.disabled = false;
    }
  }

  // ---- a run under way

  const duration = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min`
    : `${(seconds / 3600).toFixed(1)} h`);

  function liveLine(found) {
    const told = [`${many(found.done)} of ${many(found.tasks)} tasks are evaluated`];
    if (found.workers) {
      told.push(`${many(found.workers)} process${found.workers > 1 ? "es work" : " works"} on it`);
      if (found.rate) told.push(`${found.rate.toFixed(2)} tasks/s`, `about ${duration((found.tasks - found.done) / found.rate)} left`);
    } else if (found.done < found.tasks) told.push("no process works on it");
    if (figures && figures.answered) told.push(`${Math.round(100 * figures.cached / figures.answered)} % of replies from the cache`);
    if (figures && figures.failures) told.push(`${many(figures.failures)} failures`);
    return told.join("; ");
  }

  function drawProcesses(found) {
    byId("processes").hidden = !found.processes.length;
    byId("processes").querySelector("tbody").replaceChildren(...found.processes.map((each) => make("tr", null, make("td", null, each.host),
      make("td", null, each.process), make("td", { class: each.state === "died" ? "wrong" : null }, each.state),
      make("td", { class: "right" }, many(each.tasks)), make("td", { class: "right" }, each.rate ? each.rate.toFixed(2) : "-"))));
  }

  function drawFacts() {
    byId("counting").hidden = figures !== null;
    byId("facts").replaceChildren(...(figures ? figures.facts : []).flatMap(([name, text]) => [make("dt", null, name), make("dd", null, asMade(text))]));
  }

  function drawCounts() {
    const found = counts.questions, of = state();
    byId("links").replaceChildren(...filters.filter((each) => found[each.name]).map((each) =>
      make("li", null, make("a", { href: address({ ...of, task: null, filters: new Set([each.name]) }), class: each.name === "wrong" ? "wrong" : null },
        make("strong", null, many(found[each.name])), " " + each.label))));
    for (const box of byId("filters").querySelectorAll("input")) {
      box.nextSibling.textContent = ` ${filters.find((each) => each.name === box.value).label} (${many(found[box.value])})`;
    }
    options("group", of.choices.group, counts.groups, (name) => name || "none");
    options("stop", of.choices.stop, counts.stops, (name) => STOPPED[name] || name);
    options("rounds", of.choices.rounds, counts.rounds, CHOICES.rounds[1]);
    for (const id of ["group", "rounds"]) byId(id).parentElement.hidden = byId(id).options.length < 3;
    byId("stop").parentElement.hidden = !Object.keys(counts.stops).length;
  }

  function options(id, chosen, counted, text) {
    const names = Object.keys(counted);
    if (chosen !== null && !names.includes(chosen)) names.push(chosen);
    if (document.activeElement === byId(id)) return;
    byId(id).replaceChildren(make("option", { value: "*" }, "all"),
      ...names.map((name) => make("option", { value: "=" + name }, `${text(name)} (${many(counted[name] || 0)})`)));
    byId(id).value = chosen === null ? "*" : "=" + chosen;
  }

  function follow(of) {
    [counts, figures, done] = [null, null, null];
    byId("worth").replaceChildren();
    byId("worth-note").textContent = "";
    drawFacts();
    const shownRun = listed.find((each) => each.name === runOf(of));
    byId("title").textContent = visible(shownRun ? shownRun.title : runOf(of) || "No run yet");
    document.title = byId("title").textContent + ": debate view";
    poll();
  }

  let timer = null, polls = 0;

  async function poll() {
    clearTimeout(timer);
    const mine = ++polls;
    let pause = SOON;
    try {
      if (!firstRun) await readRuns();
      const run = runOf(state());
      byId("live").textContent = run ? byId("live").textContent : "The store holds no run yet.";
      const found = run ? await get("progress", { run }) : null;
      if (mine !== polls || found === null) return;
      if (!found.workers && found.done === found.tasks) pause = LATER;
      byId("live").textContent = liveLine(found);
      drawProcesses(found);
      if (done !== null && done !== found.done) refresh();
      done = found.done;
      if (counts === null || counts.evaluated !== done || figures === null) readFigures(run);
    } catch (error) {
      tell(error);
    }
    if (mine === polls) timer = setTimeout(poll, pause);
  }

  // Of a large run these take seconds, which nothing waits for; what was asked for another run comes too late.
  async function readFigures(run) {
    if (counting === run) return;
    counting = run;
    const isShown = () => counting === run && run === runOf(state());
    try {
      const counted = await get("counts", { run });
      if (!isShown()) return;
      counts = counted;
      drawCounts();
      byId("count").textContent = countText(state());
      const summed = await get("figures", { run });
      if (!isShown()) return;
      figures = summed;
      drawFacts();
    } catch (error) {
      tell(error);
    } finally {
      if (counting === run) counting = null;
    }
  }

  async function readSizes() {
    const sizes = await get("sizes", {}), sizeOf = (name, n) => (sizes[name] ? many(sizes[name][n]) : "0");
    for (const row of byId("runs").querySelectorAll("tbody tr")) {
      const [evaluated, tasks] = [...row.children].slice(-2);
      [evaluated.textContent, tasks.textContent] = [sizeOf(row.dataset.run, 0), sizeOf(row.dataset.run, 1)];
    }
  }

  async function readRuns() {
    const found = await get("runs", {});
    ({ runs: listed, filters, first: firstRun } = found);
    if (listed.length > 1) readSizes().catch(tell);
    byId("runs").hidden = listed.length < 2;
    byId("runs").querySelector("tbody").replaceChildren(...listed.map((each) => make("tr", { "data-run": each.name },
      make("td", null, make("a", { href: "#" + new URLSearchParams({ run: each.name }) }, each.title)), make("td", null, each.began),
      make("td", { class: "right" }, "…"), make("td", { class: "right" }, "…"))));
  }

  // Two runs are never beside each other here.
  function fill() {
    byId("head").append(...ONE_RUN.map(([name, , style]) => make("span", { class: style && !style.length ? style() : null }, name)));
    byId("sort").append(make("option", { value: "position" }, SORTS.position));
    for (const each of filters) {
      byId("filters").append(make("label", null, make("input", { type: "checkbox", value: each.name }), ` ${each.label}`));
    }
    byId("work-out").addEventListener("click", workOut);
    byId("start").addEventListener("change", () => change({ start: Number(byId("start").value) > 1 ? byId("start").value : null }));
  }

  async function begin() {
    byId("noscript").hidden = true;
    await readRuns();
    fill();
    listen();
    draw();
    document.documentElement.dataset.ready = "yes";
  }

  begin().catch(tell);
