import { expect, test } from "vitest";
import { viewWith } from "./viewport";

test.each([
  ["all of it is between the headers and the end", { x: 44, y: 60 }, null],
  ["it is left of the view", { x: -10, y: 60 }, { x: 34, y: 0 }],
  ["it goes beyond the right end", { x: 800, y: 60 }, { x: -80, y: 0 }],
  ["it is below the headers", { x: 44, y: 20 }, { x: 0, y: 56 }],
  ["it goes beyond the lower end", { x: 44, y: 560 }, { x: 0, y: -66 }],
  ["it is beyond a corner", { x: 800, y: 560 }, { x: -80, y: -66 }],
])("the view moves by as little as shows all of a card: %s", (_, at, moved) => {
  const box = { ...at, width: 256, height: 82 };
  const frame = { top: 52, width: 1000, height: 600 };
  expect(viewWith(box, { x: 0, y: 0, zoom: 1 }, frame)).toEqual(moved && { ...moved, zoom: 1 });
  const near = viewWith(box, { x: 0, y: 0, zoom: 1 }, frame);
  expect(near && viewWith(box, near, frame)).toBeNull();
});

test("of a card that is larger than the view, the start is shown", () => {
  const box = { x: 500, y: 0, width: 256, height: 82 };
  const frame = { top: 0, width: 200, height: 82 };
  expect(viewWith(box, { x: 0, y: 0, zoom: 1 }, frame)).toEqual({ x: -500, y: 0, zoom: 1 });
});
