(filmSide) => {
  // Counts frames, and times the way from a move of the pointer to the answer about the box that it made.
  const frames = [];
  const moves = [];
  const lags = [];
  const stale = [];
  let shown = null;
  const tick = (now) => {
    frames.push(now);
    frame = requestAnimationFrame(tick);
  };
  let frame = requestAnimationFrame(tick);
  const film = document.querySelector(".film");
  const place = film?.getBoundingClientRect();
  const scale = place ? Math.min(place.width, place.height) / filmSide : 1;
  const corner = (event) => ({
    x: (event.clientX - place.left - (place.width - filmSide * scale) / 2) / scale,
    y: (event.clientY - place.top - (place.height - filmSide * scale) / 2) / scale,
  });
  const onMove = (event) => moves.push({ at: event.timeStamp, ...corner(event) });
  film?.addEventListener("pointermove", onMove);
  const watcher = new MutationObserver(() => {
    const told = document.querySelector(".inside[data-box]")?.dataset.box;
    if (!told || told === shown?.told) return;
    const [, , x, y] = told.split(",").map(Number);
    const made = moves.findLast((move) => Math.abs(move.x - x) < 0.01 && Math.abs(move.y - y) < 0.01);
    if (!made) return;
    const now = performance.now();
    if (shown) stale.push(now - shown.at);
    lags.push(now - made.at);
    shown = { told, at: made.at };
  });
  watcher.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-box"] });
  window.benchSeen = () => {
    cancelAnimationFrame(frame);
    watcher.disconnect();
    film?.removeEventListener("pointermove", onMove);
    const seconds = (frames.at(-1) - frames[0]) / 1000;
    return { frames: (frames.length - 1) / seconds, lags, stale };
  };
}
