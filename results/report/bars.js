// Throughput of one device: own results, published ones of the same work, and the best published.

const kBarKinds = {
  own: ['measured', 0],
  published: ['published, the same work', 1],
  best: ['best published, other work', 7],
};

// [{kind, label, images_per_second, …, name, tick}]: the name has the group's, where there are several; beside the
// chart only the first bar of a group has it.
function barRows(data) {
  return data.bars.flatMap(({label, bars}) => bars.map((bar, i) => {
    const name = data.bars.length > 1 ? `${label}: ${bar.label}` : bar.label;
    return {...bar, name, tick: i === 0 ? name : bar.label};
  }));
}

function barsFigure(data) {
  const rows = barRows(data);
  if (!rows.length) return null;
  const datasets = Object.entries(kBarKinds)
                       .map(([kind, [title, index]]) => ({
                              ...barsOf(
                                  title, rows.map((row) => (row.kind === kind ? row.images_per_second : null)),
                                  index, 26),
                              grouped: false,
                              ...(kind === 'best' && {
                                backgroundColor: 'transparent',
                                borderColor: color('soft'),
                                borderWidth: 1.5,
                              }),
                            }))
                       .filter((dataset) => dataset.data.some(isNumber));
  const about = (row) => [plural(row.runs, 'run'), row.differences, row.source].filter(Boolean);
  return {
    bars: barsHeight(rows.map(({tick}) => tick)),
    label: 'Bars of throughput per device.',
    table: tableOf('Throughput per device', rows, [
      {name: 'Who', value: ({name}) => name},
      {name: 'Throughput', unit: 'images/s', text: plain, value: (row) => row.images_per_second},
      {name: 'Kind', value: ({kind}) => kBarKinds[kind][0]}, {name: 'Differs in', value: (row) => row.differences},
      {name: 'Source', value: ({source}) => source}
    ]),
    config: barsConfig(rows.map(({tick}) => tick), datasets, 'images/s', {
      title: ([item]) => rows[item.dataIndex].name,
      label: ({raw, dataIndex}) => [`${plain(raw)} images/s`, ...about(rows[dataIndex])]
    }, {legend: true}),
  };
}

function showBars(data) {
  byId('one-device').hidden = !data.bars.length;
  byId('bars-note').textContent =
      [data.bars_common, data.bars.some(({bars}) => bars.some(({kind}) => kind === 'best')) &&
           'the best published per device is of other work: its table says in what it differs']
          .filter(Boolean).join('; ');
  showFigure('bars', barsFigure(data));
}
