import { useRef } from "react";

/** The row of a list that keys are about: the one that has the focus, else the one that had it last.
 *
 * @param ids The ids of the rows, in their order.
 * @returns `move` focuses the link of the row so many further; `rememberLink` is for the `ref` of each. */
export function useRowFocus(ids: readonly string[]) {
  const links = useRef(new Map<string, HTMLAnchorElement>());
  const last = useRef<string | null>(null);
  const index = () => {
    const focused = ids.findIndex((id) =>
      links.current.get(id)?.closest("tr")?.contains(document.activeElement),
    );
    return focused >= 0 ? focused : ids.indexOf(last.current ?? "");
  };
  const move = (step: number) => {
    const id = ids[Math.min(Math.max(index() + step, 0), ids.length - 1)];
    if (id === undefined) return;
    last.current = id;
    links.current.get(id)?.focus();
  };
  const rememberLink = (id: string, link: HTMLAnchorElement | null) => {
    if (link) links.current.set(id, link);
    else links.current.delete(id);
  };
  return { focused: () => ids[index()], move, rememberLink };
}
