import { type FormValue, SchemaForm } from "@/ui/SchemaForm";
import type { JsonSchema } from "@/ui/schema";

type PolicyFormProps = { policy: FormValue; onChange: (policy: Record<string, unknown>) => void };

/** The fields of a node's policy, as docs/semantics.md has them. */
const SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    onError: {
      enum: ["fail", "continue", "default"],
      title: "If it fails",
      description:
        "continue sends the error on from the port error; default gives the value below.",
    },
    default: {
      type: "object",
      title: "Value in its place",
      description: "What it gives if it fails, and where default is chosen above.",
      properties: { handle: { type: "string", title: "Output" }, value: { title: "Value" } },
      required: ["handle", "value"],
      default: { handle: "output", value: "" },
    },
    retry: {
      type: "object",
      title: "Retry",
      properties: {
        attempts: {
          type: "integer",
          minimum: 1,
          description: "How often it is tried at most, the first time included.",
        },
        backoffS: {
          type: "number",
          title: "Pause in seconds",
          minimum: 0,
          description: "Before the second attempt; it doubles with each other one.",
        },
        on: {
          type: "array",
          title: "Errors",
          items: { type: "string" },
          description: "Only these errors are tried again, by their codes; without any, all.",
        },
        notOn: {
          type: "array",
          title: "Other errors",
          items: { type: "string" },
          description: "These are not.",
        },
      },
      required: ["attempts"],
      default: { attempts: 3, backoffS: 1 },
    },
    timeoutS: { type: "number", title: "Time limit in seconds" },
    join: {
      enum: ["all", "any"],
      title: "Starts after",
      description: "all inputs, or any one of them.",
    },
    effect: {
      enum: ["none", "read", "write", "once"],
      title: "Effect on the world",
      description: "once: after a crash, a person is asked before it acts again.",
    },
  },
};

/** How a step is run: retries, time limit, what happens when it fails. */
export function PolicyForm({ policy, onChange }: PolicyFormProps) {
  return <SchemaForm schema={SCHEMA} value={policy} onChange={(value) => onChange({ ...value })} />;
}
