import { expect, test } from "vitest";
import { createTimeScale } from "./timeScale";

test("without squeezing, time is even", () => {
  const scale = createTimeScale(
    [
      { from: 0, to: 10 },
      { from: 90, to: 100 },
    ],
    false,
  );
  expect(scale.position(50)).toBeCloseTo(0.5);
  expect(scale.ticks.map((tick) => tick.at)).toEqual([0, 30, 60, 90]);
});

test("a long idle time is squeezed to a few per cent", () => {
  const scale = createTimeScale(
    [
      { from: 0, to: 10 },
      { from: 90, to: 100 },
    ],
    true,
  );
  expect(scale.squeezed).toEqual([{ from: 10, to: 90 }]);
  expect(scale.position(0)).toBe(0);
  expect(scale.position(100)).toBeCloseTo(1);
  expect(scale.position(90) - scale.position(10)).toBeCloseTo(0.04 / 1.04);
  expect(scale.ticks.map((tick) => tick.at)).toEqual([0, 5, 10, 95, 100]);
});

test("a time in which a run only waits is squeezed too, also at its end", () => {
  const work = [
    { from: 0, to: 10 },
    { from: 110, to: 120 },
  ];
  const waits = [
    { from: 10, to: 110 },
    { from: 120, to: 220 },
  ];
  const scale = createTimeScale([...work, ...waits], true, work);
  expect(scale.squeezed).toEqual(waits);
  expect(scale.end).toBe(220);
  expect(scale.position(10)).toBeCloseTo(10 / (20 * 1.08));
  const now = { from: 220, to: 220 };
  expect(createTimeScale([...waits, now], true, [now]).squeezed).toEqual([]);
});

test("beside next to nothing that ran, a time in which a run waits is not squeezed", () => {
  const work = [{ from: 0, to: 0.02 }];
  const waits = [{ from: 0.02, to: 30 }];
  expect(createTimeScale([...work, ...waits], true, work).squeezed).toEqual([]);
});

test("overlapping spans leave no idle time, and short ones are kept as they are", () => {
  const scale = createTimeScale(
    [
      { from: 0, to: 6 },
      { from: 2, to: 9 },
      { from: 10, to: 12 },
    ],
    true,
  );
  expect(scale.squeezed).toEqual([]);
});

test("a run that has not started has a scale too", () => {
  expect(createTimeScale([], true).ticks).toHaveLength(2);
});
