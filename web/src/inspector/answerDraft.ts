import { create } from "zustand";
import { readJson } from "@/json";
import type { FormValue } from "@/ui/SchemaForm";
import type { RequestFields } from "./requestFields";

/** The answer to a request: a decision with its fields, or any JSON if the request has no actions. */
export type RequestAnswer =
  | { decision: string; note?: string; value?: unknown; form?: unknown }
  | { answer: unknown };

/** The decision that gives a result in place of the step's own. */
export const GIVE_RESULT = "give_result";

/** The decision that gives a budget new limits. */
const RAISE = "raise";

/** The decision that a call is not made, whatever its arguments. */
const REJECT = "reject";

export type AnswerDraft = {
  note: string;
  setNote: (note: string) => void;
  form: FormValue;
  setForm: (form: FormValue) => void;
  /** The edited value as text, null while it is only read. */
  text: string | null;
  setText: (text: string | null) => void;
  /** The edited value in a form of its schema, null while it is not edited so. */
  fields: FormValue | null;
  setFields: (fields: FormValue | null) => void;
  /** A field of that form holds a text that is no value of it, or holds one again. */
  setBroken: (name: string, isBroken: boolean) => void;
  /** The new limits of a budget as text, by amount. */
  limits: Readonly<Record<string, string>>;
  setLimit: (name: string, text: string) => void;
  /** The edited value is no JSON (yet). */
  isBroken: boolean;
  answerWith: (decision: string) => RequestAnswer;
};

/** What is kept of a draft. */
type Filled = Pick<AnswerDraft, "note" | "form" | "text" | "fields" | "limits"> & {
  broken: ReadonlySet<string>;
};

const EMPTY: Filled = {
  note: "",
  form: {},
  text: null,
  fields: null,
  limits: {},
  broken: new Set(),
};

/** Drafts that are kept; those of requests that nobody came back to are let go of. */
const MOST_DRAFTS = 50;

/** The draft of each request, whatever shows its fields and its buttons. */
const useDrafts = create<{ readonly drafts: ReadonlyMap<string, Filled> }>(() => ({
  drafts: new Map(),
}));

function fill(key: string, change: (before: Filled) => Partial<Filled>): void {
  useDrafts.setState(({ drafts }) => {
    const before = drafts.get(key) ?? EMPTY;
    const others = [...drafts].filter(([other]) => other !== key).slice(1 - MOST_DRAFTS);
    return { drafts: new Map([...others, [key, { ...before, ...change(before) }]]) };
  });
}

/** Forget a draft: its request was answered. */
export function dropDraft(key: string): void {
  useDrafts.setState(({ drafts }) => ({
    drafts: new Map([...drafts].filter(([other]) => other !== key)),
  }));
}

/** The name of the draft of a request. */
export function draftKey(executionId: string, requestId: string): string {
  return `${executionId} ${requestId}`;
}

/**
 * What a person has filled in so far, until a decision sends it. A request has one draft, wherever
 * its buttons are.
 */
export function useAnswerDraft(key: string, request: RequestFields): AnswerDraft {
  const filled = useDrafts(({ drafts }) => drafts.get(key)) ?? EMPTY;
  const { note, form, text, fields, limits, broken } = filled;
  const givesResult = request.actions.includes(GIVE_RESULT);
  const edited = text === null ? undefined : readEdited(text, request.value, givesResult);
  const sends = (decision: string) => text !== null && givesResult === (decision === GIVE_RESULT);
  return {
    note,
    setNote: (next) => fill(key, () => ({ note: next })),
    form,
    setForm: (next) => fill(key, () => ({ form: next })),
    text,
    setText: (next) => fill(key, () => ({ text: next })),
    fields,
    setFields: (next) =>
      fill(key, () => ({ fields: next, ...(next === null && { broken: EMPTY.broken }) })),
    setBroken: (name, isBroken) =>
      fill(key, ({ broken: before }) => {
        const after = new Set(before);
        if (isBroken) return { broken: after.add(name) };
        for (const each of before) {
          // What is inside goes with a field that is whole again, or was removed.
          if (each === name || each.startsWith(`${name}/`)) after.delete(each);
        }
        return { broken: after };
      }),
    limits,
    setLimit: (name, limit) =>
      fill(key, ({ limits: before }) => ({ limits: { ...before, [name]: limit } })),
    isBroken: (text !== null && edited === undefined) || broken.size > 0,
    answerWith: (decision) => ({
      decision,
      ...(note && { note }),
      ...(sends(decision) && { value: edited }),
      ...(fields !== null && decision !== REJECT && { value: fields }),
      ...(decision === RAISE && { value: numbersIn({ ...request.proposed, ...limits }) }),
      ...(request.form && { form }),
    }),
  };
}

/** Returns the limits that are not empty. */
function numbersIn(limits: Readonly<Record<string, string | number>>): Record<string, number> {
  const filled = Object.entries(limits).filter(([, text]) => String(text).trim() !== "");
  return Object.fromEntries(filled.map(([name, text]) => [name, Number(text)]));
}

/** Returns the value of an edited text; undefined if it should be JSON and is not. */
function readEdited(text: string, original: unknown, givesResult: boolean): unknown {
  if (typeof original === "string") return text;
  return givesResult ? jsonOrText(text) : parseJson(text);
}

/** Returns the value of a JSON text, and any other text unchanged. */
export function jsonOrText(text: string): unknown {
  const value = parseJson(text);
  return value === undefined ? text : value;
}

function parseJson(text: string): unknown {
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}
