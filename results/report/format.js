// Numbers and units as text. Nothing measured reads "n/a".
const kMissing = 'n/a';

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

// Thousands apart, with `digits` significant digits where it has fewer than that before the point.
function plain(value, digits = 4) {
  if (!isNumber(value)) return kMissing;
  const whole = Math.abs(value) < 1 ? 0 : Math.floor(Math.log10(Math.abs(value))) + 1;
  const decimals = value === 0 ? 0 : Math.max(0, Math.min(digits - whole, 6));
  return value.toLocaleString('en-US', {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
}

const count = (value) => (isNumber(value) ? value.toLocaleString('en-US') : kMissing);
const percent = (share, decimals = 1) =>
    (isNumber(share) ? `${(100 * share).toFixed(decimals)} %` : kMissing);

function scaled(value, steps, digits) {
  if (!isNumber(value)) return kMissing;
  const [factor, unit] = steps.find(([least]) => Math.abs(value) >= least) ?? steps[steps.length - 1];
  return `${plain(value / factor, digits)} ${unit}`;
}

const seconds = (value, digits = 4) =>
    value === 0 ? '0 s' : scaled(value, [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']], digits);
const bytes = (value, digits = 4) =>
    scaled(value, [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']], digits);
const rate = (value, unit, digits = 3) =>
    scaled(value, [[1e12, `T${unit}`], [1e9, `G${unit}`], [1e6, `M${unit}`], [1, unit]], digits);

// "conv_backward_data" for people.
const words = (name) => name.replaceAll('_', ' ');
const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

// The unit in which a list of times reads best, for axes, and what columns of such times have in common.
function timeUnit(values) {
  const largest = Math.max(...values.filter(isNumber), 0);
  const [factor, unit] = largest >= 1 ? [1, 's'] : largest >= 1e-3 ? [1e3, 'ms'] : [1e6, 'µs'];
  return {factor, unit, times: {unit, csvUnit: 's', text: (value) => plain(factor * value)}};
}
