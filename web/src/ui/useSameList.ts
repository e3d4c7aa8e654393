import { useRef } from "react";

/** Returns the list of the render before while its items are the same: what is made of it is kept as well. */
export function useSameList<Item>(
  list: readonly Item[],
  isSame: (a: Item, b: Item) => boolean,
): readonly Item[] {
  const before = useRef(list);
  const { current } = before;
  const isKept =
    current.length === list.length &&
    list.every((item, index) => isSame(item, current[index] as Item));
  if (!isKept) before.current = list;
  return before.current;
}
