// Per configuration: where a step's time goes, and energy.

// [{curve, point, label}] of all own curves; the label names the curve where there are several.
function allPoints(data) {
  return data.curves.flatMap(
      (curve) => curve.points.map(
          (point) => ({
            curve,
            point,
            label: data.curves.length > 1 ? `${point.case} · ${curve.label}` :
                                            point.case,
          })));
}

// Lines that have room beside a chart, cut behind commas, else between words.
function wrapped(text) {
  const longest = 22;
  const parts = text.split(/(?<=,) /).flatMap((part) => (part.length > longest ? part.split(' ') : [part]));
  const lines = [''];
  for (const part of parts) {
    const line = `${lines.at(-1)} ${part}`.trim();
    if (line.length > longest && lines.at(-1))
      lines.push(part);
    else
      lines[lines.length - 1] = line;
  }
  return lines;
}

// The axis of bars that lie on top of each other.
const barNames = (more = {}) => ({
  grid: {display: false},
  ticks: {autoSkip: false, callback(index) { return wrapped(this.getLabelForValue(index)); }},
  ...more
});

// In bars of one line each.
function barsHeight(rows) {
  const most = Math.max(...rows.map(({label}) => wrapped(label).length));
  return rows.length * (0.25 + 0.75 * most);
}

function waitsFigure(data) {
  const rows = allPoints(data).filter(({point}) => isNumber(point.step_seconds));
  if (!rows.length) return null;
  const {factor, unit} = timeUnit(rows.map(({point}) => point.step_seconds));
  const parts = [
    ['computing', 0, (p) => p.step_seconds - p.exposed_communication_seconds - p.data_wait_seconds],
    ['exposed communication', 1, (p) => p.exposed_communication_seconds],
    ['waiting for data', 4, (p) => p.data_wait_seconds],
  ];
  const datasets = parts.map(
      ([label, index, value]) =>
          barsOf(label, rows.map(({point}) => Math.max(0, factor * value(point))), index, 26));
  const time = {unit: '', csvUnit: 's', text: seconds};
  return {
    bars: barsHeight(rows),
    label: 'Bars of a step\'s time, cut into computing, exposed communication and waiting for data.',
    table: {
      caption: 'Mean step by configuration',
      columns: [
        {name: 'Configuration'}, {name: 'Step', ...time}, {name: 'Exposed communication', ...time},
        {name: 'Waiting for data', ...time}
      ],
      rows: rows.map(
          ({label,
            point: p}) => [label, p.step_seconds, p.exposed_communication_seconds, p.data_wait_seconds]),
    },
    config: chartConfig(
        'bar', {labels: rows.map(({label}) => label), datasets},
        {x: axis(`${unit} per step`, {stacked: true, beginAtZero: true}), y: barNames({stacked: true})},
        {label: ({dataset, raw}) => `${dataset.label}: ${plain(raw)} ${unit}`},
        {indexAxis: 'y', legend: {labels: {pointStyle: 'rect'}}}),
  };
}

function energyFigure(data) {
  const rows = allPoints(data).filter(({point}) => isNumber(point.joules_per_image));
  if (!rows.length) return null;
  return {
    bars: barsHeight(rows),
    label: 'Bars of energy per image.',
    table: {
      caption: 'Energy per image by configuration',
      columns: [{name: 'Configuration'}, {name: 'Energy', unit: 'J/image', text: plain}],
      rows: rows.map(({label, point}) => [label, point.joules_per_image]),
    },
    config: chartConfig(
        'bar', {
          labels: rows.map(({label}) => label),
          datasets: [barsOf('energy', rows.map(({point}) => point.joules_per_image), 2, 26)],
        },
        {x: axis('joules per image', {beginAtZero: true}), y: barNames()},
        {label: ({raw}) => `${plain(raw)} J per image`}, {indexAxis: 'y'}),
  };
}
