// The page's data as its other scripts read them: published lines come in columns, texts as indices, times in
// columns as whole nanoseconds.

// [{label, selected, source, differences, notes, points: [{case, devices, median, speedup, efficiency,
// source}]}]
function publishedCurves(columns, names) {
  const text = (parts) => parts.map((part) => names[part]).join('');
  const {point} = columns;
  let next = 0;
  const pointsOf = (curve) => Array.from({length: columns.points[curve]}, () => {
    const i = next++;
    const [devices, speedup] = [point.devices[i], point.speedup[i]];
    return {
      case: names[point.case[i]],
      devices,
      median: point.median[i],
      speedup,
      efficiency: speedup === null ? null : speedup / devices,
      source: text(point.source[i]),
    };
  });
  return columns.label.map((label, curve) => ({
                             label: text(label),
                             selected: columns.selected[curve] === 1,
                             source: text(columns.source[curve]),
                             differences: text(columns.differences[curve]),
                             notes: columns.notes[curve].map(text),
                             points: pointsOf(curve),
                           }));
}

// [{case, devices, median, speedup, efficiency, interval}]
const predictedPoints = (columns) => columns.devices.map((devices, i) => ({
                                                           case: columns.case[i],
                                                           devices,
                                                           median: columns.median[i],
                                                           speedup: columns.efficiency[i] * devices,
                                                           efficiency: columns.efficiency[i],
                                                           interval: {low: columns.low[i], high: columns.high[i]},
                                                         }));

const kTimeColumns = {
  steps: ['median', 'min', 'max'],
  profile: ['seconds', 'roofline'],
  trace: ['begin', 'seconds']
};

function fromColumns(data) {
  const {names} = data;
  const secondsOf = (nanoseconds) => (nanoseconds === null ? null : nanoseconds / 1e9);
  for (const run of data.runs) {
    for (const key of ['config', 'environment', 'checks'])
      run[key] &&= run[key].map((pair) => pair.map((text) => names[text]));
    for (const [part, columns] of Object.entries(kTimeColumns).filter(([part]) => run[part]))
      for (const key of columns) run[part][key] &&= run[part][key].map(secondsOf);
  }
  for (const curve of data.curves) curve.predicted &&= predictedPoints(curve.predicted);
  return {...data, published: publishedCurves(data.published, names)};
}
