// Which bytes each buffer holds, over the steps of an iteration.

function planFigure(run, names) {
  const plan = run.memory;
  if (!plan) return null;
  const factor = plan.arena_bytes >= 2 ** 31 ? 2 ** 30 : 2 ** 20;
  const unit = factor === 2 ** 30 ? 'GiB' : 'MiB';
  const blocks =
      plan.name.map((name, i) => ({
                      x: plan.first[i],
                      width: plan.last[i] - plan.first[i] + 1,
                      y: plan.offset[i] / factor,
                      height: plan.bytes[i] / factor,
                      title: names[name] +
                          (plan.buffers[i] > 1 ? ` and ${plural(plan.buffers[i] - 1, 'smaller one')}` : ''),
                      fill: names[plan.role[i]],
                      bytes: plan.bytes[i],
                      first: plan.first[i],
                      last: plan.last[i],
                    }));
  showLegend('plan', [...new Set(blocks.map((block) => block.fill))]);
  document.getElementById('plan-note').textContent =
      `${bytes(plan.arena_bytes)} in one arena: which bytes each buffer holds, over the ${
          count(plan.steps)} steps of an iteration.` +
      (plan.left_out ? ` ${plural(plan.left_out, 'buffer')} too small to be seen ${
                           plan.left_out === 1 ? 'is' : 'are'} left out.` :
                       '');
  return {
    label: `Picture of ${plural(blocks.length, 'block')} of memory over ${plural(plan.steps, 'instruction')}, ${
        bytes(plan.arena_bytes)} in all.`,
    table: {
      caption: `Memory plan of ${run.label}`,
      columns: [
        {name: 'Buffer'}, {name: 'Role'},
        {name: 'Offset', unit: 'MiB', csvUnit: 'B', text: (value) => plain(value / 2 ** 20, 5)},
        {name: 'Size', unit: 'MiB', csvUnit: 'B', text: (value) => plain(value / 2 ** 20)},
        {name: 'First step', text: count}, {name: 'Last step', text: count}
      ],
      rows: blocks.map(
          (block,
           i) => [block.title, words(block.fill), plan.offset[i], block.bytes, block.first, block.last]),
    },
    config: rectanglesConfig(
        blocks, axis('instruction of the iteration', {min: 0, max: plan.steps}),
        axis(unit, {min: 0, max: plan.arena_bytes / factor}),
        (block) => [`${words(block.fill)}, ${bytes(block.bytes)}`, `steps ${block.first} to ${block.last}`],
        plan.phases.map((phase) => [phase.first, phase.last + 1, phase.name])),
  };
}

// Parameters and their like fill most of the arena in small batches: without them the rest can be seen.
function setUpPlanPart() {
  document.getElementById('plan-part').addEventListener('change', ({target}) => {
    const chart = charts.plan;
    if (!chart) return;
    const {x, y} = chart.options.scales;
    const passing = chart.data.datasets[0].data.filter((block) => block.width < x.max);
    y.min = target.checked && passing.length ? Math.min(...passing.map((block) => block.y)) : 0;
    chart.update();
  });
}
