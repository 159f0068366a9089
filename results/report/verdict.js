// The verdict of `plumbline accept`: its checks, what to leave out, links and devices.

const kMostMatrixHosts = 32, kWorstHosts = 10;
const kOutcomes = {FAIL: 'bad', 'can\'t tell': 'open', pass: 'fine', skip: 'skipped'};

const hostsText = (hosts) => (hosts.length > 8 ? `${hosts.slice(0, 8).join(', ')}, …` : hosts.join(', '));

// Checks that passed come last, those of one name as one row.
function checkRows(checks) {
  const order = Object.keys(kOutcomes);
  const sorted = [...checks].sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
  const rows = [], passed = new Map();
  for (const check of sorted) {
    const first = check.verdict === 'pass' ? passed.get(check.check) : undefined;
    if (first) {
      first.where = [...first.where, ...check.where];
      first.expected = first.measured = '';
      continue;
    }
    rows.push({...check});
    if (check.verdict === 'pass') passed.set(check.check, rows.at(-1));
  }
  return rows;
}

function checkTable(checks) {
  const rows = checkRows(checks);
  const short = (name, value) => ({name, value, short: true});
  const columns = [
    {name: 'Verdict', value: ({verdict}) => verdict}, short('Check', ({check}) => check),
    short('Where', ({where}) => hostsText(where)), short('Expected', ({expected}) => expected),
    short('Measured', ({measured}) => measured),
    short('Limit', ({limit}) => (isNumber(limit) ? `-${percent(limit, 0)}` : '')),
    {name: 'By', value: ({source}) => source}
  ];
  return tableElement(tableOf('Checks', rows, columns, {
    whole: true,
    attributes: rows.map(({verdict}) => ({class: kOutcomes[verdict] ?? 'open'})),
    remarks: rows.map(({verdict, remark}) => (verdict === 'pass' ? '' : remark)),
  }));
}

function copyLine(words) {
  const button = element('button', {type: 'button', class: 'quiet'}, 'Copy');
  button.setAttribute('aria-label', `Copy “${words}”`);
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(words);
    button.textContent = 'Copied';
  });
  return element('span', {class: 'command'}, element('code', {}, words), button);
}

// Green to red by the share of what a link should reach.
const shareColor = (share) =>
    `color-mix(in srgb, var(--bad) ${Math.round(100 * Math.min(1, Math.max(0, (1 - share) / 0.5)))}%, var(--good))`;

// The hosts of the matrix: if there are many, those with the slowest links.
function matrixHosts({hosts, pairs}) {
  const names = hosts.map(({name}) => name);
  if (names.length <= kMostMatrixHosts) return names;
  const slowest = (name) => Math.min(
      ...pairs.filter(({first, second}) => [first, second].includes(name))
          .map((pair) => pair.bytes_per_second));
  return [...names].sort((a, b) => slowest(a) - slowest(b)).slice(0, kWorstHosts);
}

function linkMatrix(links, expectedLink) {
  const speeds = links.pairs.map((pair) => pair.bytes_per_second).sort((a, b) => a - b);
  const expected = expectedLink ?? speeds[Math.floor(0.75 * speeds.length)];
  const speedOf = new Map();
  for (const {first, second, bytes_per_second: speed} of links.pairs) {
    speedOf.set(`${first} ${second}`, speed);
    speedOf.set(`${second} ${first}`, speed);
  }
  const rows = matrixHosts(links), columns = rows;
  const head = element('tr', {}, element('td'), ...columns.map((name) => element('th', {scope: 'col'}, name)));
  const lines = rows.map((row) => element('tr', {}, element('th', {scope: 'row'}, row), ...columns.map((column) => {
    const speed = speedOf.get(`${row} ${column}`);
    if (speed === undefined) return element('td', {}, '');
    const share = speed / expected;
    return element(
        'td', {style: `background: ${shareColor(share)}`, title: `${row} - ${column}: ${rate(speed, 'B/s')}`},
        percent(share, 0));
  })));
  const note = `Share of ${rate(expected, 'B/s')}, ` +
      (isNumber(expectedLink) ? 'as expected.' : 'what the fastest quarter of the links reaches.') +
      (rows.length < links.hosts.length ? ` The ${rows.length} hosts with the slowest links.` : '');
  return element(
      'figure', {}, element('figcaption', {}, element('h3', {}, 'Links'), element('p', {}, note)),
      scrolled('Links between hosts', head, element('tbody', {}, ...lines), 'scroll', {class: 'matrix'}));
}

// A bar for each device, the slowest first; the line is what it may not fall below.
function deviceStrip(devices) {
  const share = (device) => device.images_per_second / device.expected;
  const sorted = [...devices].sort((a, b) => share(a) - share(b));
  const height = (value) => `${Math.min(100, value / 1.2 * 100).toFixed(1)}%`;
  const bars = sorted.map((device) => element('span', {
    class: kOutcomes[device.verdict] ?? 'open',
    style: `height: ${height(share(device))}`,
    title: `${device.device}: ${plain(device.images_per_second)} images/s, ${percent(share(device))} of expected`,
  }));
  const limit = element('i', {style: `bottom: ${height(1 - sorted[0].limit)}`});
  const [slowest, fastest] = [sorted[0], sorted.at(-1)];
  const text = `Slowest: ${slowest.device} with ${plain(slowest.images_per_second)} images/s, ` +
      `${percent(share(slowest))} of expected; fastest: ${fastest.device} with ` +
      `${plain(fastest.images_per_second)}. Line: limit of ${percent(slowest.limit, 0)} below.`;
  return element(
      'figure', {}, element('figcaption', {}, element('h3', {}, 'Devices alone'), element('p', {}, text)),
      element('div', {class: 'strip', role: 'img', 'aria-label': text}, ...bars, limit));
}

// The page of an accept shows them with its verdict.
function showLinks({verdict, links}) {
  const section = byId('links');
  section.hidden = Boolean(verdict) || (links?.pairs ?? []).length < 2;
  if (!section.hidden) byId('link-matrix').replaceChildren(linkMatrix(links, null));
}

function showVerdict({verdict, links}) {
  const section = byId('verdict');
  section.hidden = !verdict;
  if (!verdict) return;
  const {hosts, excluded, checks, devices = []} = verdict;
  const kept = hosts.filter((host) => !excluded.includes(host));
  const bad = excluded.length ? `, ${excluded.length} bad: ${hostsText(excluded)}` : '';
  const word = element(
      'span', {class: `word ${kOutcomes[verdict.verdict] ?? 'open'}`},
      verdict.verdict === 'can\'t tell' ? 'CAN\'T TELL' : verdict.verdict.toUpperCase());
  byId('verdict-title').replaceChildren(word, ` ${plural(hosts.length, 'host')}${bad}`);
  const kinds = [...new Set(devices.map(({name}) => name))];
  byId('verdict-note').textContent = [
    hostsText(hosts), kinds.join(', '), verdict.began, `took ${seconds(verdict.seconds, 2)}`
  ].filter(Boolean).join(' · ');
  const commands = excluded.length && kept.length ?
      [copyLine(`srun --exclude=${excluded.join(',')}`), copyLine(`mpirun -H ${kept.join(',')}`)] :
      [];
  const figures = [
    devices.length ? deviceStrip(devices) : null,
    links?.pairs?.length ? linkMatrix(links, verdict.expected_link_bytes_per_second) : null
  ];
  byId('verdict-parts')
      .replaceChildren(
          checkTable(checks), element('p', {class: 'note'}, ...commands), element('div', {class: 'pair'}, ...figures.filter(Boolean)));
}
