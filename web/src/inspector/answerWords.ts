import type { NodeAnsweredData } from "@/api/types";
import { isObject } from "@/json";
import { principalWords } from "@/ui/principalWords";
import { actionLabel } from "./requestFields";

/** An answer, as the API and as events have it. */
type Answered = Pick<NodeAnsweredData, "answer"> & {
  by?: string;
  answered_by?: NodeAnsweredData["answered_by"] | null;
};

/** What an answer holds, as far as a page can show it. */
export type AnswerFields = {
  decision: string | null;
  note: string;
  /** What was passed on; undefined where the answer has none. */
  value: unknown;
  /** The fields of the form. */
  form: readonly [name: string, value: unknown][];
};

/** Reads an answer; what has no decision is a value as a whole. */
export function readAnswer({ answer }: Answered): AnswerFields {
  const fields: Record<string, unknown> = isObject(answer) ? answer : {};
  if (typeof fields.decision !== "string") {
    return { decision: null, note: "", value: answer, form: [] };
  }
  return {
    decision: fields.decision,
    note: typeof fields.note === "string" ? fields.note : "",
    value: fields.value,
    form: isObject(fields.form) ? Object.entries(fields.form) : [],
  };
}

/** The icon of an answer: a tick, but not for what ends a way. */
export function statusOfAnswer(answered: Answered) {
  const { decision } = readAnswer(answered);
  return decision === "reject" || decision === "fail" ? "cancelled" : "completed";
}

const DONE: Record<string, string> = {
  approve: "Approved",
  reject: "Rejected",
  edit: "Changed the plan",
  raise: "Raised",
  stop: "Stopped",
};

/** "Approved", "Ask again", "Answered" */
export function decisionWords(decision: string | null): string {
  return decision === null ? "Answered" : (DONE[decision] ?? actionLabel(decision));
}

/** "Approved", "Rejected: “numbers first”", "Nobody answered in time, so “Reject” was taken" */
export function answerWords(answered: Answered): string {
  const { decision, note } = readAnswer(answered);
  if (answered.by === "timeout") {
    const taken = decision === null ? "the default" : `“${actionLabel(decision)}”`;
    return `Nobody answered in time, so ${taken} was taken`;
  }
  const said = decisionWords(decision);
  return note ? `${said}: “${note}”` : said;
}

/** "the operator, in a browser", "nobody, the time was over", "a person" */
export function answererWords({ by, answered_by }: Answered): string {
  if (by === "timeout") return "nobody, the time was over";
  return answered_by ? principalWords(answered_by) : "a person";
}
