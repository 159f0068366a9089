// Medians over the window for each rank's GPU, where it tells.
const kGpuColumns = [
  {name: 'SM clock', unit: 'MHz', text: count}, {name: 'Power', unit: 'W', text: plain},
  {name: 'Temperature', unit: '°C', text: count}, {name: 'Held back', unit: 'of the time', text: percent}
];
function gpuCells({gpus}, rank) {
  if (!gpus) return [];
  const gpu = gpus.find((one) => one.rank === rank);
  return [
    ...['sm_clock_mhz', 'power_watts', 'temperature_celsius'].map((key) => gpu?.[key].median),
    gpu?.throttled_share
  ];
}
