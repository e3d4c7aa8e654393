import { type RefObject, useEffect } from "react";

/** How far from its end a reader may be who still follows, in px. */
const NEAR = 120;

/** Keeps the end of a list in view while it grows, unless the reader has scrolled up.
 *
 * Whether one follows is decided where one scrolls, not after a growth, which may be of any size. */
export function useStickToEnd(growing: RefObject<HTMLElement | null>) {
  useEffect(() => {
    const list = growing.current;
    const scroller = list?.closest("[data-scroller]");
    if (!list || !scroller) return;
    const distance = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    let isFollowing = distance() < NEAR;
    const onScroll = () => {
      isFollowing = distance() < NEAR;
    };
    const observer = new ResizeObserver(() => {
      if (isFollowing) scroller.scrollTop = scroller.scrollHeight;
    });
    scroller.addEventListener("scroll", onScroll, { passive: true });
    observer.observe(list);
    return () => {
      scroller.removeEventListener("scroll", onScroll);
      observer.disconnect();
    };
  }, [growing]);
}
