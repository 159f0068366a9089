// Tables, their CSV files, and small pieces of the document.

const byId = (id) => document.getElementById(id);

// element("p", {class: "note"}, "text", child, …); texts are never read as HTML.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A table has a row for each item and a cell for each column: {name, value: item to value, unit, text}. A column
// with `text` (value to text) is one of numbers, one that is `short` isn't broken; CSV files have the values
// themselves, whose units are `csvUnit` or `unit`. `more`: whole, open; attributes and remarks of the rows.
const tableOf = (caption, items, columns, more = {}) =>
    ({caption, columns, rows: items.map((item) => columns.map(({value}) => value(item) ?? null)), ...more});

function tableElement({caption, columns, rows, whole, attributes = [], remarks = []}) {
  const kindOf = ({text, short}) => (short ? {class: 'short'} : text ? {class: 'number'} : {});
  const heading = (column) => element(
      'th', {scope: 'col', ...kindOf(column)}, column.name,
      column.unit ? element('span', {class: 'unit'}, column.unit) : null);
  const cell = (column, value, i) => element(
      i === 0 ? 'th' : 'td', {...(i === 0 && {scope: 'row'}), ...kindOf(column)},
      column.text ? column.text(value) : value);
  const remark = (text) =>
      element('tr', {class: 'remark'}, element('td'), element('td', {colspan: columns.length - 1}, text));
  const lines = rows.flatMap((row, i) => [
    element('tr', attributes[i], ...columns.map((column, place) => cell(column, row[place], place))),
    ...(remarks[i] ? [remark(remarks[i])] : [])
  ]);
  return scrolled(
      caption, element('tr', {}, ...columns.map(heading)), element('tbody', {}, ...lines),
      whole ? 'scroll whole' : 'scroll');
}

function scrolled(caption, head, body, kind, attributes = {}) {
  const made =
      element('table', attributes, element('caption', {}, caption), element('thead', {}, head), body);
  return element('div', {class: kind, role: 'region', 'aria-label': caption, tabindex: '0'}, made);
}

// RFC 4180. What a spreadsheet would take for a formula is made text.
function csvField(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvText(table) {
  const name = (column) => {
    const unit = column.csvUnit ?? column.unit;
    return unit ? `${column.name} (${unit})` : column.name;
  };
  const lines = [table.columns.map(name), ...table.rows];
  return lines.map((line) => line.map(csvField).join(',')).join('\r\n') + '\r\n';
}

// What stands below a chart: its numbers, closed at first, and as a file.
function numbersBelow(table, fileName) {
  const link = element('a', {
    class: 'csv',
    download: fileName,
    href: `data:text/csv;charset=utf-8,${encodeURIComponent(csvText(table))}`,
    'aria-label': `Download the numbers of “${table.caption}” as CSV`
  }, 'Download CSV');
  const summary = element('summary', {}, `Numbers (${plural(table.rows.length, 'row')})`);
  const details = element('details', table.open ? {open: ''} : {}, summary, tableElement(table));
  return element('div', {class: 'below'}, details, link);
}

// Figures with a name: [[name, value, remark], …].
function showTiles(list, tiles) {
  list.replaceChildren(...tiles.filter(Boolean).map(
      ([name, value, remark]) => element(
          'div', {}, element('dt', {}, name),
          element('dd', {}, value, remark ? element('small', {}, remark) : null))));
}
