  // ---- the data of a report: they stand in the file, compressed

  const KEPT_BLOCKS = 8;

  async function unpack(id) {
    const coded = atob(byId(id).textContent), bytes = new Uint8Array(coded.length);
    for (let n = 0; n < coded.length; n++) bytes[n] = coded.charCodeAt(n);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  // Where the data come from: the index once, and each block of evaluations when one of them is opened.
  const source = { index: () => unpack("index"), block: (id) => unpack("b" + id) };

  let blockSize, lower = [];
  const blocks = new Map(), places = new Map();

  async function record(taskId) {
    const n = places.get(taskId);
    if (n === undefined) return null;
    const id = Math.floor(n / blockSize);
    if (!blocks.has(id)) blocks.set(id, await source.block(id));
    if (blocks.size > KEPT_BLOCKS) blocks.delete(blocks.keys().next().value);
    const row = Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[n]]));
    return { ...blocks.get(id)[n % blockSize], row };
  }

  const levels = async (group) => (await unpack("searches"))[group] || [];

  // Those of a run's calls, where the file was made with them; see `--prompts`.
  let isWithPrompts = false;
  const hasPrompts = () => isWithPrompts;

  async function prompts(taskId, run) {
    const n = places.get(taskId), found = await unpack("p" + Math.floor(n / blockSize));
    return { calls: found[n % blockSize][run], problem: "" };
  }

  function select(of) {
    const words = of.search.toLowerCase(), wanted = filters.filter((each) => of.filters.has(each.name));
    const bits = wanted.reduce((mask, each) => mask | (1 << filters.indexOf(each)), 0);
    const chosen = Object.entries(of.choices).filter(([, value]) => value !== null), found = [];
    for (let n = 0; n < size; n++) {
      if (bits && (columns.marks[n] & bits) !== bits) continue;
      if (!chosen.every(([name, value]) => String(columns[name][n]) === value)) continue;
      if (words && !lower[n].includes(words)) continue;
      found.push(n);
    }
    if (of.sort === "change") {
      const place = { lost: 0, won: 1, "": 2 };
      found.sort((a, b) => place[columns.change[a]] - place[columns.change[b]] || a - b);
    } else if (of.sort !== "position" && columns[of.sort]) {
      const key = columns[of.sort], sign = FALLING.has(of.sort) ? -1 : 1;
      const last = (value) => value === null || value === undefined;
      found.sort((a, b) => last(key[a]) - last(key[b]) || sign * ((key[a] > key[b]) - (key[a] < key[b])) || a - b);
    }
    return found;
  }

  const countText = () => (shown.length === size ? `${size.toLocaleString("en")} tasks`
    : `${shown.length.toLocaleString("en")} of ${size.toLocaleString("en")} tasks`);

  function more() {}

  const MISSING = ["The file holds no such task", "It may hold only some of the run's tasks."];

  function fill() {
    byId("head").append(...cells().map(([name, , style]) => make("span", { class: style && !style.length ? style() : null }, name)));
    for (const [name, [, read]] of Object.entries(CHOICES)) {
      const values = [...new Set(columns[name])];
      if (name === "rounds") values.sort((a, b) => a - b);
      byId(name).append(make("option", { value: "*" }, "all"), ...values.map((value) => make("option", { value: "=" + value }, read(String(value)))));
      byId(name).parentElement.hidden = values.length < 2;
    }
    byId("sort").append(...Object.entries(SORTS).map(([name, label]) => make("option", { value: name }, label)));
    if (runs.length < 2) byId("sort").querySelector("[value=change]").remove();
    for (const each of filters) {
      if (each.count) byId("filters").append(make("label", null, make("input", { type: "checkbox", value: each.name }), ` ${each.label} (${each.count})`));
    }
  }

  async function begin() {
    const index = await source.index();
    ({ columns, filters, runs, block: blockSize, prompts: isWithPrompts } = index);
    size = columns.id.length;
    columns.id.forEach((id, n) => places.set(id, n));
    lower = columns.id.map((id, n) => (id + " " + columns.text[n]).toLowerCase());
    byId("noscript").hidden = true;
    fill();
    listen();
    draw();
    document.documentElement.dataset.ready = "yes";
  }

  begin();
