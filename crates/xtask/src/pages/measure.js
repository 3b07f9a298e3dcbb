(() => {
  const problems = [];
  const width = document.documentElement.clientWidth;
  const name = node => {
    const element = node.nodeType === 3 ? node.parentElement : node;
    return `<${element.tagName.toLowerCase()}${element.classList.length ? '.' + [...element.classList].join('.') : ''}>`;
  };
  const short = text => text.trim().replace(/\s+/g, ' ').slice(0, 50);
  const rgb = text => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; })
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const background = element => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0.9) return color;
    }
    return [255, 255, 255];
  };
  const look = state => {
    if (document.scrollingElement.scrollWidth > width + 1) {
      problems.push(`${state}: the page scrolls sideways: ${document.scrollingElement.scrollWidth} px of ${width}`);
    }
    const boxes = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      // The content of a closed <details> has boxes, but is not shown.
      if (!node.textContent.trim() || parent.closest('script, style, title, [hidden]') || !parent.checkVisibility()) continue;
      const svg = parent.closest('svg');
      const range = document.createRange();
      range.selectNodeContents(node);
      // A box of a text in HTML is as high as its font's line: its letters are in the middle.
      const rects = svg ? [parent.getBoundingClientRect()] : [...range.getClientRects()];
      const scroller = parent.closest('.wide');
      const area = scroller && scroller.getBoundingClientRect();
      for (const rect of rects) {
        if (rect.width < 1 || rect.height < 1) continue;
        if (!scroller && (rect.left < -1 || rect.right > width + 1)) {
          problems.push(`${state}: cut at the edge of the page: ${name(node)} "${short(node.textContent)}"`);
        }
        for (let at = parent; at && at !== document.body; at = at.parentElement) {
          const style = getComputedStyle(at);
          const clips = at.tagName === 'svg' ? style.overflow !== 'visible' : style.overflowX === 'hidden' || style.overflowX === 'clip';
          const inside = at.getBoundingClientRect();
          if (clips && (rect.left < inside.left - 1.5 || rect.right > inside.right + 1.5 || rect.top < inside.top - 3 || rect.bottom > inside.bottom + 3)) {
            problems.push(`${state}: clipped by ${name(at)}: "${short(node.textContent)}"`);
          }
        }
        const trim = rect.height * (svg ? 0.2 : 0.28);
        if (!area || (rect.right > area.left && rect.left < area.right)) {
          boxes.push({ node, left: rect.left, right: rect.right, top: rect.top + trim, bottom: rect.bottom - trim });
        }
      }
      if (!svg && rects.length && state === 'folded') {
        const style = getComputedStyle(parent), [a, b] = [light(rgb(style.color)), light(background(parent))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) problems.push(`${state}: contrast ${contrast.toFixed(1)}: ${name(node)} "${short(node.textContent)}"`);
      }
      if (svg && rects[0].width > 1 && state === 'folded' && !/^ht/.test(parent.getAttribute('class') || '')) {
        const [a, b] = [light(rgb(getComputedStyle(parent).fill)), light(background(svg))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) problems.push(`${state}: contrast ${contrast.toFixed(1)} in a plot: "${short(node.textContent)}"`);
      }
    }
    boxes.sort((a, b) => a.top - b.top);
    for (let i = 0; i < boxes.length; i++) {
      for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom; j++) {
        const [a, b] = [boxes[i], boxes[j]];
        if (a.node !== b.node && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 && a.bottom - b.top > 1.5) {
          problems.push(`${state}: "${short(a.node.textContent)}" and "${short(b.node.textContent)}" overlap`);
        }
      }
    }
  };
  look('folded');
  const folded = [...document.querySelectorAll('details:not([open])')];
  folded.forEach(part => { part.open = true; });
  look('unfolded');
  folded.forEach(part => { part.open = false; });
  const plot = document.querySelector('svg[data-x]');
  if (plot) {
    const box = plot.getBoundingClientRect();
    plot.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true }));
    const tip = document.getElementById('tip');
    if (!tip || tip.hidden || !tip.textContent) problems.push('a plot shows no value under the pointer');
    plot.dispatchEvent(new PointerEvent('pointerleave'));
    if (document.querySelector('button[data-copy][hidden]')) problems.push('a copy button is hidden');
  }
  return [...new Set(problems)].slice(0, 12);
})()
