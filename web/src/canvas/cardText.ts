import type { NodeDocument } from "@/api/types";
import { taskText } from "./taskText";

/** Fields of data that say what a step does where it has no task, the first one that is set. */
const SAYING = [
  "userPrompt",
  "prompt",
  "question",
  "goal",
  "text",
  "message",
  "template",
  "expression",
  "url",
];

/** Returns what a step is to do, for its card: its task, else the text of its data that says it. */
export function cardText({ description, data }: NodeDocument): string {
  const texts = [description, ...SAYING.map((field) => data?.[field])];
  const text = texts.find((each) => typeof each === "string" && each.trim() !== "");
  return taskText(String(text ?? "")).trim();
}
