(() => {
  const tip = document.getElementById('tip');
  const hide = () => { tip.hidden = true; };
  for (const svg of document.querySelectorAll('svg[data-x]')) {
    const xs = svg.dataset.x.split(' ').map(Number), texts = svg.dataset.t.split('|'), line = svg.querySelector('.hv');
    svg.addEventListener('pointermove', event => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      let at = 0;
      xs.forEach((place, index) => { if (Math.abs(place - x) < Math.abs(xs[at] - x)) at = index; });
      line.setAttribute('x1', xs[at]);
      line.setAttribute('x2', xs[at]);
      tip.textContent = texts[at].split(' · ').join('\n');
      tip.hidden = false;
      const width = document.documentElement.clientWidth, wanted = event.clientX + 14;
      tip.style.left = Math.max(4, Math.min(wanted, width - tip.offsetWidth - 8)) + scrollX + 'px';
      tip.style.top = event.clientY + 16 + scrollY + 'px';
    });
    svg.addEventListener('pointerleave', () => { hide(); line.setAttribute('x1', -9); line.setAttribute('x2', -9); });
  }
  addEventListener('scroll', hide, { passive: true });
  const copied = text => {
    if (navigator.clipboard && isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    return Promise.resolve();
  };
  for (const button of document.querySelectorAll('button[data-copy]')) {
    button.hidden = false;
    button.addEventListener('click', () => {
      const name = button.textContent;
      copied(JSON.parse(document.getElementById(button.dataset.copy).textContent)).then(
        () => { button.textContent = 'copied'; }, () => { button.textContent = 'not copied'; }
      ).finally(() => setTimeout(() => { button.textContent = name; }, 1500));
    });
  }
})();
