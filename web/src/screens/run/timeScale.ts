/** A span of time in seconds since the start of the run. */
export type Span = { from: number; to: number };
export type Tick = { at: number; position: number };
export type TimeScale = {
  end: number;
  /** Returns where a second stands, from 0 (left) to 1 (right). */
  position: (second: number) => number;
  ticks: Tick[];
  /** Idle times that are drawn narrower than they were. */
  squeezed: Span[];
};

/** An idle time is squeezed if it is longer than this share of all busy time. */
const LONG_GAP = 0.25;
/** Nothing is squeezed beside less busy time: "0.0 s" would look like most of the run. */
const LEAST_BUSY_S = 0.1;
/** A squeezed idle time is as wide as this share of all busy time. */
const SQUEEZED_WIDTH = 0.04;
const STEPS_S = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400,
];
const MOST_TICKS = 6;

/** Ticks are not closer than this share of the width: at both sides of a squeezed time. */
const LEAST_DISTANCE = 0.06;

/** Returns a scale over `spans`; with `squeeze`, long times in which nothing of `busy` ran are narrow. */
export function createTimeScale(
  spans: readonly Span[],
  squeeze: boolean,
  busy: readonly Span[] = spans,
): TimeScale {
  const end = Math.max(0.1, ...spans.map((span) => span.to));
  const squeezed = squeeze ? longGaps(busy, end) : [];
  const idle = squeezed.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const gapWidth = (end - idle) * SQUEEZED_WIDTH;
  const width = end - idle + squeezed.length * gapWidth;
  const position = (second: number) => {
    let shift = 0;
    for (const gap of squeezed) {
      const share = (Math.min(Math.max(second, gap.from), gap.to) - gap.from) / (gap.to - gap.from);
      shift += share * (gap.to - gap.from - gapWidth);
    }
    return (second - shift) / width;
  };
  return { end, position, squeezed, ticks: ticksOf(end, squeezed, position) };
}

/** Returns the long times in which nothing ran; none where nothing has run at all. */
function longGaps(spans: readonly Span[], end: number): Span[] {
  const gaps: Span[] = [];
  let reached = 0;
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    if (span.from > reached) gaps.push({ from: reached, to: span.from });
    reached = Math.max(reached, span.to);
  }
  if (end > reached) gaps.push({ from: reached, to: end });
  const busy = end - gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  if (busy < LEAST_BUSY_S) return [];
  return gaps.filter((gap) => gap.to - gap.from > busy * LONG_GAP);
}

function ticksOf(end: number, squeezed: readonly Span[], position: TimeScale["position"]): Tick[] {
  const shown = end - squeezed.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const step = STEPS_S.find((each) => shown / each <= MOST_TICKS) ?? Math.ceil(shown / MOST_TICKS);
  const ticks: Tick[] = [];
  let index = 0;
  while (index * step <= end) {
    const at = index * step;
    const gap = squeezed.find((each) => at > each.from && at < each.to);
    const tick = { at, position: position(at) };
    const isClose = tick.position - (ticks.at(-1)?.position ?? -1) < LEAST_DISTANCE;
    if (!gap && !isClose) ticks.push(tick);
    index = gap ? Math.ceil(gap.to / step) : index + 1;
  }
  return ticks;
}
