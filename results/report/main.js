// The page: what stands at the top, the summary, and the run that is looked at.

const data = JSON.parse(byId('data').textContent);
const series = makeSeries(data);

function showTop() {
  const hosts = new Set(data.runs.flatMap(({record}) => (record?.ranks ?? []).map(({host}) => host)));
  byId('made').textContent = [
    data.created, data.made_by, plural(data.runs.length, 'run'),
    hosts.size ? `on ${hostsText([...hosts])}` : ''
  ].filter(Boolean).join(' · ');
  showVerdict(data);
  showLinks(data);
  showNotes(data);
  showLeftOut(data.left_out);
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

function runTiles({images_per_second: speed, record}) {
  const throughput = plain(speed);
  if (!record) return [['Throughput', throughput, 'images/s, read from a log']];
  const {images_per_second: speeds, loss} = record;
  const images = record.batch_per_device * record.world_size;
  const checks = Object.entries(record.checks);
  const failed = checks.filter(([, value]) => value === false).map(([name]) => words(name));
  const {peak} = record.memory_bytes;
  return [
    ['Throughput', throughput, 'images/s, of all devices'],
    [
      'Step time', seconds(images / speeds.median),
      `median; ${seconds(images / speeds.max)} to ${seconds(images / speeds.min)} in all`
    ],
    ['Exposed communication', seconds(record.exposed_communication_seconds, 3), 'per step, rank 0'],
    ['Waiting for data', seconds(record.data_wait_seconds, 3), 'per step, rank 0'],
    isNumber(peak) && ['Peak memory', bytes(peak), 'of a device'],
    isNumber(record.energy_joules_per_image) &&
        ['Energy', `${plain(record.energy_joules_per_image, 3)} J`, 'per image'],
    isNumber(loss[0]) && ['Loss', plain(loss.at(-1)), `at the end; ${plain(loss[0])} at first`],
    checks.length &&
        ['Checks', failed.length ? 'failed' : 'passed', failed.join(', ') || plural(checks.length, 'check')],
  ];
}

function showRun(index) {
  const run = data.runs[index];
  byId('run-choice').value = String(index);
  byId('run-note').textContent = `${run.configuration_text} · ${run.origin}`;
  showTiles(byId('run-figures'), runTiles(run));
  showFigure('timeline', timelineFigure(run));
  showFigure('ranks', ranksFigure(run));
  showFigure('kinds', kindsFigure(run));
  byId('trace-note').textContent = run.trace ?
      `Open ${run.trace} at ui.perfetto.dev or chrome://tracing to see when every instruction began and ended.` :
      'Run with --trace to see when every instruction began and ended.';
}

// An accept that failed before its runs has a verdict only.
function hideRuns() {
  for (const part of document.querySelectorAll('main > section:not(#verdict), nav')) part.hidden = true;
}

function showRuns() {
  showSummary();
  const bars = barsFigure(data);
  byId('one-device').hidden = !bars;
  showFigure('bars', bars);
  setUpSeries(series, () => showScaling(series));
  showScaling(series);
  showFigure('waits', waitsFigure(data));
  const choice = byId('run-choice');
  choice.replaceChildren(...data.runs.map((run, i) => element('option', {value: i}, run.label)));
  choice.addEventListener('change', () => showRun(Number(choice.value)));
  showRun(data.shown_run);
}

showTop();
if (data.runs.length)
  showRuns();
else
  hideRuns();
// For tests and for the curious: the data, the charts by name, and how to look at another run.
window.plumbline = {
  data,
  charts,
  showRun,
  ready: true,
};
