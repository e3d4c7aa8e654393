import { useState } from "react";
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

/** What a person has filled in so far, until a decision sends it. */
export function useAnswerDraft(request: RequestFields): AnswerDraft {
  const [note, setNote] = useState("");
  const [form, setForm] = useState<FormValue>({});
  const [text, setText] = useState<string | null>(null);
  const [fields, setFields] = useState<FormValue | null>(null);
  const [broken, setBroken] = useState<ReadonlySet<string>>(new Set());
  const [limits, setLimits] = useState<Readonly<Record<string, string>>>({});
  const givesResult = request.actions.includes(GIVE_RESULT);
  const edited = text === null ? undefined : readEdited(text, request.value, givesResult);
  const sends = (decision: string) => text !== null && givesResult === (decision === GIVE_RESULT);
  return {
    note,
    setNote,
    form,
    setForm,
    text,
    setText,
    fields,
    setFields: (next) => {
      setFields(next);
      if (next === null) setBroken(new Set());
    },
    setBroken: (name, isBroken) =>
      setBroken((before) => {
        const after = new Set(before);
        if (isBroken) after.add(name);
        else after.delete(name);
        return after;
      }),
    limits,
    setLimit: (name, limit) => setLimits((before) => ({ ...before, [name]: limit })),
    isBroken: (text !== null && edited === undefined) || broken.size > 0,
    answerWith: (decision) => ({
      decision,
      ...(note && { note }),
      ...(sends(decision) && { value: edited }),
      ...(fields !== null && decision !== REJECT && { value: fields }),
      ...(decision === RAISE && { value: numbersIn(limits) }),
      ...(request.form && { form }),
    }),
  };
}

/** Returns the limits that were filled in. */
function numbersIn(limits: Readonly<Record<string, string>>): Record<string, number> {
  const filled = Object.entries(limits).filter(([, text]) => text.trim() !== "");
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
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
