import { type RefObject, useEffect } from "react";

/** Keeps the end of a list in view while it grows, unless the reader has scrolled up. */
export function useStickToEnd(end: RefObject<HTMLElement | null>, count: number) {
  useEffect(() => {
    const scroller = end.current?.closest("[data-scroller]");
    if (count === 0 || !scroller) return;
    const distance = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    if (distance < 120) scroller.scrollTop = scroller.scrollHeight;
  }, [end, count]);
}
