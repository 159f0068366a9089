// How fast each collective of a step travels.

function collectivesFigure(run) {
  const collectives = run.record?.collectives ?? [];
  if (!collectives.length) return null;
  const giga = ({bus_bytes_per_second: {min, median, max}}) => [min, median, max].map((speed) => speed / 1e9);
  const medians = collectives.map((one) => giga(one)[1]);
  const speed = {unit: 'GB/s', text: (value) => plain(value, 3)};
  const rank = {text: count};
  return {
    bars: collectives.length,
    label:
        `Bars of the bus bandwidth of ${plural(collectives.length, 'collective')}, the median of the ranks.`,
    table: {
      caption: `Collectives of ${run.label}`,
      columns: [
        {name: 'Collective'}, {name: 'Size', csvUnit: 'B', text: bytes},
        {name: 'Time', csvUnit: 's', text: seconds}, {name: 'Bus bandwidth from', ...speed},
        {name: 'median', ...speed}, {name: 'to', ...speed}, {name: 'Slowest rank', ...rank},
        {name: 'Last rank', ...rank}
      ],
      rows: collectives.map(
          (one) => [one.name, one.bytes, one.seconds.median, ...giga(one), one.slowest_rank, one.last_rank]),
    },
    config: barsConfig(
        collectives.map((one) => one.name), [barsOf('bus bandwidth', medians, 1, 18)], 'GB/s',
        {label: ({raw}) => `${plain(raw, 3)} GB/s`}),
  };
}
