// Looked at from outside by report_in_browser.py: what a reader sees of the page, as plain data.
window.pageChecks = (() => {
  const shown = (element) =>
    element.checkVisibility({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true});

  // Any CSS color, as the browser paints it.
  const pixel = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const known = new Map();
  const rgba = (color) => {
    if (known.has(color)) return known.get(color);
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = color;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    known.set(color, {rgb: [r, g, b], alpha: a / 255});
    return known.get(color);
  };
  const over = (above, below) => above.rgb.map((c, i) => c * above.alpha + below[i] * (1 - above.alpha));

  // What lies behind an element, up to the page's own white or black.
  const background = (element, canvas) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), canvas);
  };

  // WCAG 2.2, relative luminance and contrast ratio
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };

  const name = (element) =>
    element.tagName.toLowerCase() + (element.id ? '#' + element.id : '') +
    (element.className && element.className.baseVal === undefined ? '.' + element.className : '');

  // Text with too little contrast. `canvas`: what the page itself is painted on.
  const poorContrast = (canvas) => {
    const poor = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let looked = 0;
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || !shown(element) || element.closest('script, style, :disabled')) continue;
      const style = getComputedStyle(element);
      const behind = background(element, canvas);
      const measured = ratio(over(rgba(style.color), behind), behind);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      ++looked;
      if (measured < (large ? 3 : 4.5))
        poor.push(`${name(element)} '${node.data.trim().slice(0, 30)}': ${measured.toFixed(2)}`);
    }
    return {looked, poor};
  };

  // The lowest contrast of Chart.js's labels with what lies behind the chart.
  const chartTextContrast = (canvas) => Math.min(...Object.values(plumbline.charts).flatMap((chart) => {
    const behind = background(chart.canvas, canvas);
    return Object.values(chart.scales).flatMap(({options}) => [options.ticks.color, options.title.color])
      .map((color) => ratio(over(rgba(color), behind), behind));
  }));

  // Where the axes put the middle of a point or rectangle, or the end of a bar that stands on its own: [x, y], null
  // where that says nothing.
  const placeOf = (chart, raw) => {
    const {x, y} = chart.scales;
    if (typeof raw === 'object')
      return [x.getPixelForValue(raw.x + (raw.width ?? 0) / 2), y.getPixelForValue(raw.y + (raw.height ?? 0) / 2)];
    const lies = chart.options.indexAxis === 'y';
    if ((lies ? x : y).options.stacked) return [null, null];
    return lies ? [x.getPixelForValue(raw), null] : [null, y.getPixelForValue(raw)];
  };

  // Whether each point, bar and rectangle lies where the axes say, and its middle has its color in the canvas. What is
  // too small or below another one isn't looked at.
  const painted = (chart) => {
    const context = chart.canvas.getContext('2d');
    const scale = chart.canvas.width / chart.width;
    const wrong = [];
    let looked = 0;
    chart.data.datasets.forEach((dataset, index) => {
      if (/^(ideal|roofline$)/.test(dataset.label ?? '') && chart.config.type === 'line') return;
      chart.getDatasetMeta(index).data.forEach((item, i) => {
        const {x, y} = item.getCenterPoint();
        const [width, height] = [item.width ?? 8, item.height ?? 8];
        const above = chart.data.datasets.slice(0, index).some((_, other) => chart.getDatasetMeta(other).data.some(
          (one) => Math.hypot(one.getCenterPoint().x - x, one.getCenterPoint().y - y) < 10));
        if (width < 5 || height < 5 || above || ['crossRot', 'cross', 'star'].includes(dataset.pointStyle)) return;
        const wanted = rgba(item.options.backgroundColor).rgb;
        const got = [...context.getImageData(Math.round(x * scale), Math.round(y * scale), 1, 1).data];
        ++looked;
        const there = typeof dataset.data[i] === 'object' ? [x, y] : [item.x, item.y];
        placeOf(chart, dataset.data[i]).forEach((place, k) => {
          if (place !== null && Math.abs(place - there[k]) > 1)
            wrong.push(`${dataset.label ?? ''} ${i}: at ${there} instead of ${place}`);
        });
        if (got[3] < 255 || wanted.some((c, k) => Math.abs(c - got[k]) > 3))
          wrong.push(`${dataset.label ?? ''} ${i}: ${got} instead of ${wanted}`);
      });
    });
    return {looked, wrong};
  };

  const headings = () =>
    [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter(shown).map((h) => Number(h.tagName[1]));

  // What the Tab key should reach, in the order of the document.
  const focusable = () =>
    [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')].filter(
      (e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({visibilityProperty: true}) &&
        (e.type !== 'radio' || e.checked || !e.name));

  const focused = () => {
    const element = document.activeElement;
    const style = getComputedStyle(element);
    return {
      index: focusable().indexOf(element), name: name(element),
      ring: (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none'
    };
  };

  // Elements that reach out of the page to the right, but for those inside boxes that scroll.
  const tooWide = () => {
    const scrolls = (e) => e && e !== document.body && e !== document.documentElement &&
      (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
    return [...document.body.querySelectorAll('*')]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement) && shown(e))
      .map(name);
  };

  // Rows of cards that end before their box does.
  const halfEmptyRows = () => [...document.querySelectorAll('.tiles, .pair')].filter(shown).flatMap((box) => {
    const ends = new Map();
    for (const {top, right} of [...box.children].filter(shown).map((card) => card.getBoundingClientRect()))
      ends.set(Math.round(top), Math.max(right, ends.get(Math.round(top)) ?? 0));
    return [...ends.values()].filter((end) => end < box.getBoundingClientRect().right - 3).map(() => name(box));
  });

  return {poorContrast, chartTextContrast, painted, headings, focusable: () => focusable().map(name), focused, tooWide, halfEmptyRows};
})();
