// How many bytes buffers of each role hold, over the ops of an iteration.

function planFigure(run) {
  const {memory} = run;
  if (!memory?.names.length) return null;
  const factor = memory.arena_bytes >= 2 ** 31 ? 2 ** 30 : 2 ** 20;
  const roles = Object.entries(memory.role_bytes);
  const title = (i) => `${count(i * memory.per_entry)}: ${memory.names[i]}`;
  byId('plan-note').textContent =
      `Bytes in use of ${bytes(memory.arena_bytes)} in one arena, over the ${
          plural(memory.ops, 'op')} of an iteration.`;
  return {
    label: `Areas of memory in use by role over ${plural(memory.ops, 'op')}.`,
    table: {
      caption: `Memory of ${run.label}`,
      columns: [
        {name: 'Op'},
        ...roles.map(([role]) => ({name: words(role), unit: 'MiB', csvUnit: 'B', text: (value) => plain(value / 2 ** 20)}))
      ],
      rows: memory.names.map((_, i) => [title(i), ...roles.map(([, values]) => values[i])]),
    },
    config: chartConfig(
        'line', {
          labels: memory.names.map((_, i) => i * memory.per_entry),
          datasets: roles.map(([role, values]) => ({
                                label: words(role),
                                data: values.map((value) => value / factor),
                                fill: true,
                                stepped: 'middle',
                                borderWidth: 0,
                                pointRadius: 0,
                                backgroundColor: namedColor(role),
                              }))
        },
        {
          x: axis('op of the iteration', {ticks: {maxRotation: 0}}),
          y: axis(factor === 2 ** 30 ? 'GiB' : 'MiB', {stacked: true, beginAtZero: true})
        },
        {
          title: ([item]) => title(item.dataIndex),
          label: ({dataset, raw}) => `${dataset.label}: ${bytes(raw * factor)}`
        },
        {interaction: {mode: 'index', intersect: false}, legend: {labels: {pointStyle: 'rect'}}}),
  };
}
