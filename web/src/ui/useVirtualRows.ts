import { useEffect, useLayoutEffect, useRef, useState } from "react";

/** Lists up to this length are drawn whole: the browser finds words in them, and prints them. */
const MOST_WHOLE = 100;
/** The range of drawn rows moves by as many at once, and is longer than the window by as many. */
const BLOCK = 20;

type Range = { first: number; last: number; rowHeight: number };

/** A row to be drawn, and the height in px of those that are left out before it. */
export type VirtualRow = { index: number; gap: number };

/** Which rows of a long list are drawn: those in the window, some around them, and the one that has the
 * focus with its neighbours, where Tab leads. It does not matter which element scrolls.
 *
 * @param count How many rows there are, all of one height.
 * @param usualHeight Their height in px until one of them has been measured.
 * @returns `list` is for the element that holds nothing but the rows. It has `overflow-anchor: none`, and
 * keeps the margins of its rows inside: where it begins must not depend on what is drawn. Each row has its index as
 * `data-row`. `rest` is the height of what is left out after the last one. */
export function useVirtualRows<List extends HTMLElement>(count: number, usualHeight: number) {
  const list = useRef<List>(null);
  const [range, setRange] = useState<Range>({ first: 0, last: BLOCK, rowHeight: usualHeight });
  const [focused, setFocused] = useState<number | null>(null);
  const isWhole = count <= MOST_WHOLE;

  const look = useRef(() => {});
  look.current = () => {
    if (isWhole || !list.current) return;
    const row = list.current.querySelector("[data-row]");
    const height = row?.getBoundingClientRect().height || range.rowHeight;
    // Borders that collapse make a row a pixel higher than the next: the range must not waver.
    const rowHeight = Math.abs(height - range.rowHeight) > 1 ? height : range.rowHeight;
    const above = Math.max(0, -list.current.getBoundingClientRect().top) / rowHeight;
    const first = Math.max(0, Math.floor(above / BLOCK) * BLOCK - BLOCK);
    const last = first + Math.ceil(window.innerHeight / rowHeight) + 3 * BLOCK;
    const isSame = first === range.first && last === range.last && rowHeight === range.rowHeight;
    if (!isSame) setRange({ first, last, rowHeight });
  };
  const [observer] = useState(() => new ResizeObserver(() => look.current()));
  // Also where the list has been moved by what stands around it: told after the browser's own layout, as
  // to measure here would have it lay out the page twice.
  useLayoutEffect(() => {
    if (isWhole || !list.current) return;
    observer.observe(list.current);
    return () => observer.disconnect();
  });
  useEffect(() => {
    const scrolled = () => look.current();
    document.addEventListener("scroll", scrolled, { capture: true, passive: true });
    window.addEventListener("resize", scrolled);
    return () => {
      document.removeEventListener("scroll", scrolled, { capture: true });
      window.removeEventListener("resize", scrolled);
    };
  }, []);
  useEffect(() => {
    const place = list.current;
    const enter = ({ target }: FocusEvent) => {
      const row = target instanceof Element ? target.closest("[data-row]") : null;
      setFocused(row instanceof HTMLElement ? Number(row.dataset.row) : null);
    };
    const leave = () => setFocused(null);
    place?.addEventListener("focusin", enter);
    place?.addEventListener("focusout", leave);
    return () => {
      place?.removeEventListener("focusin", enter);
      place?.removeEventListener("focusout", leave);
    };
  }, []);

  const indices = isWhole ? upTo(0, count) : drawnIndices(range, count, focused);
  const rows = indices.map((index, place): VirtualRow => {
    const before = place === 0 ? -1 : (indices[place - 1] ?? 0);
    return { index, gap: (index - before - 1) * range.rowHeight };
  });
  const rest = (count - 1 - (indices.at(-1) ?? -1)) * range.rowHeight;
  return { list, rows, rest };
}

function drawnIndices({ first, last }: Range, count: number, focused: number | null): number[] {
  const start = Math.max(0, Math.min(first, count - BLOCK));
  const indices = new Set(upTo(start, Math.min(last, count)));
  if (focused !== null) {
    for (const index of upTo(Math.max(0, focused - 1), Math.min(focused + 2, count))) {
      indices.add(index);
    }
  }
  return [...indices].sort((a, b) => a - b);
}

function upTo(first: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
}
