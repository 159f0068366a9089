// Light and dark, and what charts take from them.
const kSeries = 8;
const kMarkers = ['circle', 'rect', 'triangle', 'rectRot', 'crossRot', 'star', 'rectRounded', 'cross'];
// Likewise, as text.
const kSigns = ['●', '■', '▲', '◆', '✕', '✳', '▣', '✚'];
const kDashes = [[7, 4], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4], [2, 6], [6, 2, 2, 2, 2, 2], [1, 2]];

const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
let chosenTheme = null;

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const seriesColor = (index) => color(`series-${index % kSeries}`);

function faded(hex, share) {
  const part = (at) => parseInt(hex.slice(at, at + 2), 16);
  return `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${share})`;
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  Chart.defaults.color = color('soft');
  Chart.defaults.borderColor = color('grid');
  Chart.defaults.backgroundColor = color('shade');
  const other = theme === 'dark' ? 'Light' : 'Dark';
  byId('theme').textContent = `${other} colors`;
}

const presentTheme = () => chosenTheme ?? (systemDark.matches ? 'dark' : 'light');

// `redraw`: draws all charts anew.
function watchTheme(redraw) {
  const change = (theme) => {
    applyTheme(theme);
    redraw();
  };
  byId('theme').addEventListener('click', () => {
    chosenTheme = presentTheme() === 'dark' ? 'light' : 'dark';
    change(chosenTheme);
  });
  systemDark.addEventListener('change', () => change(presentTheme()));
  // Paper is white.
  window.addEventListener('beforeprint', () => change('light'));
  window.addEventListener('afterprint', () => change(presentTheme()));
}
