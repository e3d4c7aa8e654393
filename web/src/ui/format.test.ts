import { expect, test } from "vitest";
import * as format from "@/ui/format";

test("a duration has tenths below a minute, then minutes, then hours", () => {
  expect([0, 0.42, 24.94, 59.94, 59.95, 61, 3723].map(format.formatDuration)).toEqual([
    "0.0 s",
    "0.4 s",
    "24.9 s",
    "59.9 s",
    "1:00",
    "1:01",
    "1:02:03",
  ]);
});

test("a running clock always has minutes and two digits of seconds", () => {
  expect([0, 24.9, 61, 3600].map(format.formatClock)).toEqual(["0:00", "0:24", "1:01", "1:00:00"]);
});

test("a long time that is left is told in days", () => {
  expect([-1, 0, 61, 172_799, 172_800, 604_799].map(format.formatLeft)).toEqual([
    "The time is over",
    "The time is over",
    "1:01 left",
    "47:59:59 left",
    "2 days left",
    "6 days left",
  ]);
});

test("amounts have thousands separators and the right form of the word", () => {
  expect(format.formatAmount(2427, "token")).toBe("2,427 tokens");
  expect(format.formatAmount(1, "step")).toBe("1 step");
  expect(format.formatAmount(0, "reply", "replies")).toBe("0 replies");
});

test("estimates have two digits", () => {
  expect(format.formatRange(1873, 3422)).toBe("1,900 to 3,400");
  expect(format.formatRange(0, 0)).toBe("0");
});

test("money keeps the digits that matter", () => {
  expect([0, 0.00001, 0.0004, 0.0156265, 0.12, 14.2].map(format.formatUsd)).toEqual([
    "free",
    "under $0.0001",
    "$0.0004",
    "$0.0156",
    "$0.12",
    "$14.20",
  ]);
});

test("what is used of a budget has its unit once", () => {
  expect(format.usedWords("tokens", 126, 200_000)).toBe("126 of 200,000 tokens");
  expect(format.usedWords("usd", 0, 5)).toBe("$0 of $5.00");
  expect(format.usedWords("wall_s", 4, 90)).toBe("4.0 s of 1:30");
});

test("a day is a date", () => {
  expect(format.formatDay("2026-11-05")).toBe("5 Nov 2026");
});

test("sizes and shares", () => {
  expect([1, 980, 64_000, 1_240_000, 42_000_000, 1_100_000_000].map(format.formatBytes)).toEqual([
    "1 byte",
    "980 bytes",
    "64 kB",
    "1.2 MB",
    "42 MB",
    "1.1 GB",
  ]);
  expect([0.439, 0.9999, 1].map(format.formatShare)).toEqual(["43 %", "99 %", "100 %"]);
});

test("times are of the day, yesterday, or a date", () => {
  const now = new Date(2026, 10, 23, 14, 0);
  expect(format.formatMoment(new Date(2026, 10, 23, 13, 28), now)).toBe("13:28");
  expect(format.formatMoment(new Date(2026, 10, 22, 23, 59), now)).toBe("Yesterday");
  expect(format.formatMoment(new Date(2026, 10, 21, 13, 28), now)).toBe("21 Nov");
  expect(format.formatMoment(new Date(2025, 11, 31), now)).toBe("31 Dec 2025");
  expect(format.formatMoment(new Date(2026, 10, 24, 9, 0), now)).toBe("24 Nov");
  expect(format.formatTime(new Date(2026, 0, 1, 13, 28, 35), true)).toBe("13:28:35");
});

test("a time of another day names the day", () => {
  const now = new Date(2026, 10, 23, 14, 0);
  const words = (...at: [number, number, number]) =>
    format.formatInstant(new Date(...at, 13, 28, 35), now);
  expect(words(2026, 10, 23)).toBe("13:28:35");
  expect(words(2026, 10, 22)).toBe("yesterday, 13:28");
  expect(words(2026, 10, 30)).toBe("30 Nov, 13:28");
  expect(words(2027, 0, 2)).toBe("2 Jan 2027, 13:28");
});
