import { renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import { useSameList } from "./useSameList";

type Item = { id: string; x: number };
const isSame = (a: Item, b: Item) => a.id === b.id && a.x === b.x;

test("a list is the one before while its items are the same", () => {
  const first = [{ id: "a", x: 1 }];
  const { result, rerender } = renderHook(({ list }) => useSameList(list, isSame), {
    initialProps: { list: first },
  });
  rerender({ list: [{ id: "a", x: 1 }] });
  expect(result.current).toBe(first);
  const moved = [{ id: "a", x: 2 }];
  rerender({ list: moved });
  expect(result.current).toBe(moved);
  rerender({ list: [...moved, { id: "b", x: 1 }] });
  expect(result.current).toHaveLength(2);
});
