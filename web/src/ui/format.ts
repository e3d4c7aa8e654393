import type { JsonNumber } from "@/json";

/** Numbers and times as the page writes them. */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const CLOCK_SECONDS = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DAY_YEAR = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
});

/** 2,427 */
export function formatCount(value: JsonNumber): string {
  return WHOLE.format(Number(value));
}

/** "1 step", "2,427 tokens" */
export function formatAmount(value: number, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${Math.round(value) === 1 ? one : many}`;
}

/** "0.4 s", "24.9 s", from a minute on "1:01", from an hour on "1:02:03" */
export function formatDuration(seconds: JsonNumber): string {
  const tenths = Math.round(Math.max(0, Number(seconds)) * 10);
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`;
  return formatClock(tenths / 10);
}

/** "0:24", "1:01", "1:02:03": for a time that runs, where the width must not jump. */
export function formatClock(seconds: number): string {
  const total = Math.floor(Math.max(0, seconds));
  const [hours, minutes] = [Math.floor(total / 3600), Math.floor(total / 60) % 60];
  const rest = String(total % 60).padStart(2, "0");
  if (hours === 0) return `${minutes}:${rest}`;
  return `${hours}:${String(minutes).padStart(2, "0")}:${rest}`;
}

const DAY_S = 86_400;

/** "6 days left", in the last two days "23:59:10 left"; "The time is over". */
export function formatLeft(seconds: number): string {
  if (seconds <= 0) return "The time is over";
  if (seconds < 2 * DAY_S) return `${formatClock(seconds)} left`;
  return `${formatAmount(Math.floor(seconds / DAY_S), "day")} left`;
}

function roundTo2Digits(value: number): number {
  if (value < 100) return Math.round(value);
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Math.round(value / unit) * unit;
}

/** "1,900 to 3,400": an estimate, so it has two digits. */
export function formatRange(low: JsonNumber, high: JsonNumber): string {
  const [from, to] = [roundTo2Digits(Number(low)), roundTo2Digits(Number(high))];
  return from === to ? formatCount(to) : `${formatCount(from)} to ${formatCount(to)}`;
}

/** "$0.0004", "$0.12", "$14.20", "under $0.0001"; 0 is "free". */
export function formatUsd(amount: JsonNumber): string {
  const usd = Number(amount);
  if (usd <= 0) return "free";
  if (usd < 0.0001) return "under $0.0001";
  if (usd < 0.1) return `$${usd.toFixed(4)}`;
  return `$${usd.toFixed(2)}`;
}

/** "$0.0004", "<$0.0001", "$0": for the cells of a table. */
export function formatUsdShort(amount: JsonNumber): string {
  const usd = Number(amount);
  if (usd <= 0) return "$0";
  return usd < 0.0001 ? "<$0.0001" : formatUsd(usd);
}

/** What the limits of a budget are called. */
export const LIMIT_NAMES: Readonly<Record<string, string>> = {
  usd: "dollars",
  tokens: "tokens",
  calls: "calls of models",
  wall_s: "seconds",
};

/** "$5.00", "200,000 tokens", "3 calls", "1:05 h" of a budget. */
export function amountWords(name: string, amount: number): string {
  if (name === "usd") return amount > 0 ? formatUsd(amount) : "$0";
  if (name === "wall_s") return formatDuration(amount);
  return formatAmount(amount, name.replace(/s$/, ""));
}

/** "$0.42 of $5.00", "126 of 200,000 tokens": what is used of a budget. */
export function usedWords(name: string, used: number, most: number): string {
  const hasUnits = name === "usd" || name === "wall_s";
  return `${hasUnits ? amountWords(name, used) : formatCount(used)} of ${amountWords(name, most)}`;
}

/** "980 bytes", "64 kB", "1.2 MB" */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return formatAmount(bytes, "byte");
  if (bytes < 999_500) return `${formatCount(bytes / 1000)} kB`;
  const [size, unit] = bytes < 999_500_000 ? [bytes / 1e6, "MB"] : [bytes / 1e9, "GB"];
  return `${size < 10 ? size.toFixed(1) : formatCount(size)} ${unit}`;
}

/** "43 %" of a share between 0 and 1; 100 % only when it is all there. */
export function formatShare(share: number): string {
  return `${Math.floor(Math.min(1, Math.max(0, share)) * 100)} %`;
}

/** "13:28", with seconds "13:28:35" */
export function formatTime(time: Date, seconds = false): string {
  return (seconds ? CLOCK_SECONDS : CLOCK).format(time);
}

/** "13:28" today, then "Yesterday", then "21 Nov", in another year "21 Nov 2025"; so later days */
export function formatMoment(time: Date, now: Date = new Date()): string {
  const days = daysBetween(now, time);
  if (days === 0) return formatTime(time);
  if (days === -1) return "Yesterday";
  return (time.getFullYear() === now.getFullYear() ? DAY : DAY_YEAR).format(time);
}

/** "30 Nov 2026" of a day such as 2026-11-30 */
export function formatDay(day: string): string {
  return DAY_YEAR.format(new Date(`${day}T00:00`));
}

/** "13:28:35" today, on other days "yesterday, 13:28" or "21 Nov, 13:28": within a sentence */
export function formatInstant(time: Date, now: Date = new Date()): string {
  const days = daysBetween(now, time);
  if (days === 0) return formatTime(time, true);
  return `${days === -1 ? "yesterday" : formatMoment(time, now)}, ${formatTime(time)}`;
}

/** How many midnights are between two times; a day of the change to summer time has 23 hours. */
function daysBetween(from: Date, to: Date): number {
  const midnight = (time: Date) =>
    new Date(time.getFullYear(), time.getMonth(), time.getDate()).getTime();
  return Math.round((midnight(to) - midnight(from)) / 86_400_000);
}
