// The page: what stands at the top, the summary, and the run that is looked at.

const data = JSON.parse(byId('data').textContent);
const series = makeSeries(data);
let presentRun = data.shown_run;

function showTop() {
  const hosts = new Set(data.runs.flatMap(({record}) => (record?.ranks ?? []).map(({host}) => host)));
  byId('made').textContent = [
    data.created, data.made_by, plural(data.runs.length, 'run'),
    hosts.size ? `on ${hostsText([...hosts])}` : ''
  ].filter(Boolean).join(' · ');
  showVerdict(data);
  showLinks(data);
  showAnswers(data);
  showNotes(data);
  showLeftOut(data.left_out);
}

function imagesPerSecond(value) {
  const whole = document.createDocumentFragment();
  whole.append(plain(value), element('span', {class: 'unit'}, ' images/s'));
  return whole;
}

function showSummary() {
  const points = allPoints(data);
  byId('common').textContent = data.curves.length > 1 && data.common ? `All: ${data.common}.` : '';
  const table = summaryTable(points);
  const below = numbersBelow(table, 'summary.csv');
  below.querySelector('details').remove();
  byId('summary-table').replaceChildren(tableElement(table), below);
}

function summaryTable(points) {
  const number = (name, unit, value, text) => ({name, unit, value, text});
  const wanted = [
    {name: 'Configuration', value: ({curve}) => curve.label},
    {name: 'Case', short: true, value: ({point}) => point.case},
    number('Runs', '', ({point}) => point.images_per_second.length, count),
    number('Throughput', 'images/s, median', ({point}) => point.median, plain),
    number('from', 'images/s', ({point}) => point.interval?.low, plain),
    number('to', 'images/s', ({point}) => point.interval?.high, plain),
    number('Per device', 'images/s', ({point}) => point.median / point.devices, plain),
    number('Speedup', '', ({point}) => point.speedup, (value) => plain(value, 3)),
    number('Efficiency', '', ({point}) => point.efficiency, percent),
    number(
        'Peak memory', 'GiB per device',
        ({point}) => (isNumber(point.peak_memory_bytes) ? point.peak_memory_bytes / 2 ** 30 : null),
        (value) => plain(value, 3)),
    number('Energy', 'J/image', ({point}) => point.joules_per_image, (value) => plain(value, 3)),
  ];
  // A column in which nothing was measured says nothing.
  const columns = wanted.filter(
      ({name, value}) => ['Speedup', 'Runs'].includes(name) ||
          points.some((one) => (value(one) ?? null) !== null));
  return tableOf('Configurations', points, columns, {whole: true});
}

// The run itself, or another one of its configuration: a profile is kept for one run each.
function runWith(index, key) {
  const point = data.curves.flatMap((curve) => curve.points).find(({runs}) => runs.includes(index));
  const found = data.runs[index][key] ? index : point?.runs.find((other) => data.runs[other][key]);
  return found === undefined ? {} : data.runs[found];
}

function runTiles({distribution, images_per_second: speed, record}) {
  const throughput = imagesPerSecond(speed);
  if (!record) return [['Throughput', throughput, 'read from a log']];
  const {images_per_second: speeds, loss} = record;
  const checks = Object.entries(record.checks);
  const failed = checks.filter(([, value]) => value === false).map(([name]) => words(name));
  const {peak} = record.memory_bytes;
  const underWay = record.sent_bytes_per_step / record.bus_bytes_per_second;
  return [
    ['Throughput', throughput, `steps from ${plain(speeds.min)} to ${plain(speeds.max)}`],
    distribution && ['Step time', seconds(distribution.median), `median; ${spreadText(distribution)}`],
    ['Exposed communication', seconds(record.exposed_communication_seconds, 3), 'per step, rank 0'],
    isNumber(record.modeled_communication_seconds) &&
        [
          'Exchange by the links', seconds(record.modeled_communication_seconds, 3),
          isNumber(underWay) ? `per step; ${seconds(underWay, 3)} under way` : 'per step'
        ],
    ['Waiting for data', seconds(record.data_wait_seconds, 3), 'per step, rank 0'],
    isNumber(peak) && ['Peak memory', bytes(peak), 'of a device'],
    isNumber(record.energy_joules_per_image) &&
        ['Energy', `${plain(record.energy_joules_per_image, 3)} J`, 'per image'],
    isNumber(loss[0]) && ['Loss', plain(loss.at(-1)), `at the end; ${plain(loss[0])} at first`],
    checks.length &&
        ['Checks', failed.length ? 'failed' : 'passed', failed.join(', ') || plural(checks.length, 'check')],
  ];
}

function showRun() {
  const run = {...data.runs[presentRun], distribution: distributionOf(data.runs[presentRun])};
  const name = run.record?.device_name ?? '';
  const device = run.configuration_text.includes(name) ? '' : name;
  byId('run-note').textContent = [run.configuration_text, device, run.origin].filter(Boolean).join(' · ');
  showTiles(byId('run-figures'), runTiles(run));
  showFigure('timeline', timelineFigure(run));
  showFigure('ranks', ranksFigure(run));
  const profiled = runWith(presentRun, 'profile');
  showFigure('kinds', kindsFigure(profiled));
  showOf('ops', run, profiled.label && profiled.label !== run.label ? profiled : null);
  const traced = runWith(presentRun, 'trace').trace;
  byId('trace-note').textContent = traced ?
      `Open ${traced} at ui.perfetto.dev or chrome://tracing to see when every instruction began and ended.` :
      'Run with --trace to see when every instruction began and ended.';
  showSetup(run);
}

// Which run a section shows. `other`: the one of its configuration for which the profile is kept.
function showOf(section, run, other = null) {
  document.querySelector(`#${section} .of-run`).textContent =
      other ? `Profile of ${other.label}, the run of this configuration for which it is kept.` : `Of ${run.label}.`;
}

// {build: {version: …}} as [['build.version', …]].
function leavesOf(json, prefix = '') {
  return Object.entries(json ?? {})
      .flatMap(
          ([key, value]) => (value && value.constructor === Object ? leavesOf(value, `${prefix}${key}.`) : [
            [prefix + key, typeof value === 'string' ? value : JSON.stringify(value)]
          ]));
}

function showSetup(run) {
  showOf('setup', run);
  const fill = (id, caption, rows, otherwise) => byId(id).replaceChildren(
      rows.length ? tableElement({caption, columns: [{name: 'Name'}, {name: 'Value'}], rows}) :
                    element('p', {class: 'missing'}, otherwise));
  fill(
      'environment', `Environment of ${run.label}`, leavesOf(run.environment),
      'A run folder (--output of the benches) has env.json; this run has none.');
  fill(
      'config', `Options of ${run.label}`, leavesOf(run.record?.config),
      'Options are kept in run folders (--output of the benches), not in logs.');
}

function setUpRuns() {
  const choice = byId('run-choice');
  choice.replaceChildren(...data.runs.map((run, i) => element('option', {value: i}, run.label)));
  choice.value = String(presentRun);
  choice.addEventListener('change', () => {
    presentRun = Number(choice.value);
    showRun();
  });
}

// An accept that failed before its runs has a verdict only.
function hideRuns() {
  for (const part of document.querySelectorAll('main > section:not(#verdict), nav')) part.hidden = true;
}

function drawAll() {
  if (!data.runs.length) return;
  const bars = barsFigure(data);
  byId('one-device').hidden = !bars;
  showFigure('bars', bars);
  showScaling(series);
  showFigure('waits', waitsFigure(data));
  showRun();
}

showTop();
if (data.runs.length) {
  showSummary();
  setUpSeries(series, () => showScaling(series));
  setUpRuns();
} else {
  hideRuns();
}
drawAll();
// For tests and for the curious: the data, the charts by name, and how to look at another run.
window.plumbline = {
  data,
  charts,
  showRun: (index) => {
    presentRun = index;
    byId('run-choice').value = String(index);
    showRun();
  },
  ready: true,
};
