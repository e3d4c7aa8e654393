import type { UsageData, UsageResponse } from "@/api/types";
import { numberOf, writeJson } from "@/json";
import type { NodeState } from "@/stream/runState";
import { formatCount } from "@/ui/format";

/**
 * The usage that an attempt has emitted since it began or was last answered. An attempt that is
 * entered again repeats its calls; usage that it emits a second time was paid only once.
 */
type AttemptUsage = {
  readonly attempt: number | null;
  /** How often the execution had changed its owner at the newest event of the attempt. */
  readonly generation: number;
  readonly recorded: readonly string[];
  /** The part of it that the attempt may emit again. */
  readonly repeatable: readonly string[];
};

/** What decides from the events of an execution which usage was paid. Keys are paths. */
export type UsageLedger = {
  readonly attempts: ReadonlyMap<string | null, AttemptUsage>;
  /** Attempts never entered again: their recorded usage was not paid in this execution. */
  readonly firstEntries: ReadonlyMap<string | null, number | null>;
  readonly epoch: unknown;
  readonly generation: number;
};

export function emptyLedger(): UsageLedger {
  return { attempts: new Map(), firstEntries: new Map(), epoch: 1, generation: 0 };
}

/** Return the ledger after an attempt was entered; `isFirst` of a start that is no re-entry. */
export function enterAttempt(
  ledger: UsageLedger,
  path: string,
  attempt: number | null,
  isFirst: boolean,
): UsageLedger {
  const found = ledger.attempts.get(path);
  const firstEntries = new Map(ledger.firstEntries);
  if (found === undefined && isFirst) firstEntries.set(path, attempt);
  else firstEntries.delete(path);
  if (found === undefined || found.attempt !== attempt) return { ...ledger, firstEntries };
  const attempts = new Map(ledger.attempts).set(path, reenter(found, ledger.generation));
  return { ...ledger, attempts, firstEntries };
}

/** Return the ledger after an attempt was left: its node waits, tries again or has ended. */
export function leaveAttempt(ledger: UsageLedger, path: string): UsageLedger {
  if (!ledger.attempts.has(path) && !ledger.firstEntries.has(path)) return ledger;
  const attempts = new Map(ledger.attempts);
  const firstEntries = new Map(ledger.firstEntries);
  attempts.delete(path);
  firstEntries.delete(path);
  return { ...ledger, attempts, firstEntries };
}

/** Return the ledger after the execution was resumed; a new owner enters all attempts again. */
export function resumeExecution(ledger: UsageLedger, epoch: unknown): UsageLedger {
  if (epoch === ledger.epoch) return ledger;
  return { ...ledger, epoch, generation: ledger.generation + 1, firstEntries: new Map() };
}

/** Return the ledger after a usage event, and whether that usage was paid and is new. */
export function recordUsage(
  ledger: UsageLedger,
  path: string | null,
  attempt: number | null,
  data: UsageData,
): { ledger: UsageLedger; isPaid: boolean } {
  const key = writeJson([
    data.provider,
    data.model,
    data.input_tokens,
    data.output_tokens,
    data.cache_read_tokens,
    data.cache_write_tokens,
    data.reasoning_tokens,
  ]);
  let usage = ledger.attempts.get(path);
  if (usage === undefined || usage.attempt !== attempt) {
    usage = { attempt, generation: ledger.generation, recorded: [], repeatable: [] };
  } else if (usage.generation !== ledger.generation) {
    usage = reenter(usage, ledger.generation);
  }
  const isRecorded = Boolean(data.recorded);
  const isRepeated = isRecorded && usage.repeatable.includes(key);
  const next = isRepeated
    ? { ...usage, repeatable: usage.repeatable.toSpliced(usage.repeatable.indexOf(key), 1) }
    : { ...usage, recorded: [...usage.recorded, key] };
  const isFirst = attempt !== null && ledger.firstEntries.get(path) === attempt;
  return {
    ledger: { ...ledger, attempts: new Map(ledger.attempts).set(path, next) },
    isPaid: !isRepeated && !(isRecorded && isFirst),
  };
}

/** Return a total with the usage of one event; invalid amounts add nothing. */
export function addUsage(total: UsageResponse, data: UsageData): UsageResponse {
  const cost = amount(data.cost_usd);
  return {
    calls: total.calls + 1,
    input_tokens: total.input_tokens + (amount(data.input_tokens) ?? 0),
    output_tokens: total.output_tokens + (amount(data.output_tokens) ?? 0),
    cost_usd: cost === null ? total.cost_usd : exactSum(Number(total.cost_usd ?? 0), cost),
    estimated: total.estimated || Boolean(data.estimated),
    ...added("cache_read_tokens", total, data),
    ...added("cache_write_tokens", total, data),
    ...added("reasoning_tokens", total, data),
  };
}

/** Return whether a step was cut off in its first call: it had written something, and nobody says what that cost. */
export function isCostUnknown({ status, usage, text, reasoning }: NodeState): boolean {
  const isCutOff = status === "cancelled" || status === "failed" || status === "retrying";
  return isCutOff && usage.calls === 0 && text.length + reasoning.length > 0;
}

/** As the service rounds it: prices of a token have no more decimals, so the sum is exact in any order. */
function exactSum(a: number, b: number): number {
  return Number((a + b).toFixed(12));
}

/** Tokens that are a part of others are absent for 0. */
function added(
  name: "cache_read_tokens" | "cache_write_tokens" | "reasoning_tokens",
  total: UsageResponse,
  data: UsageData,
): Partial<UsageResponse> {
  const sum = (total[name] ?? 0) + (amount(data[name]) ?? 0);
  return sum > 0 ? { [name]: sum } : {};
}

/** What a usage line says of tokens: `10,000 in (of which 9,000 from the cache), 500 out (of which 90 reasoning)`. */
export function tokenWords(usage: UsageResponse): string {
  const cached = usage.cache_read_tokens ?? 0;
  const fromCache = cached > 0 ? ` (of which ${formatCount(cached)} from the cache)` : "";
  const thought = usage.reasoning_tokens ?? 0;
  const ofReasoning = thought > 0 ? ` (of which ${formatCount(thought)} reasoning)` : "";
  const [read, written] = [usage.input_tokens, usage.output_tokens].map(formatCount);
  return `${read} in${fromCache}, ${written} out${ofReasoning}`;
}

function reenter(usage: AttemptUsage, generation: number): AttemptUsage {
  return { ...usage, generation, repeatable: usage.recorded };
}

function amount(value: unknown): number | null {
  const number = numberOf(value);
  return number !== null && number >= 0 ? number : null;
}
