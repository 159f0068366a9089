// Per configuration: where a step's time goes.

// [{curve, point, label}] of all own curves.
const allPoints = (data) => data.curves.flatMap(
    (curve) => curve.points.map((point) => ({curve, point, label: `${point.case}, ${curve.label}`})));

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
    bars: rows.length,
    label: 'Bars of a step\'s time, cut into computing, exposed communication and waiting for data.',
    table: tableOf('Mean step by configuration', rows, [
      {name: 'Configuration', value: ({label}) => label},
      {name: 'Step', ...time, value: ({point}) => point.step_seconds},
      {name: 'Exposed communication', ...time, value: ({point}) => point.exposed_communication_seconds},
      {name: 'Waiting for data', ...time, value: ({point}) => point.data_wait_seconds}
    ]),
    config: barsConfig(
        rows.map(({label}) => label), datasets, `${unit} per step`,
        {label: ({dataset, raw}) => `${dataset.label}: ${plain(raw)} ${unit}`}, {stacked: true, legend: true}),
  };
}
