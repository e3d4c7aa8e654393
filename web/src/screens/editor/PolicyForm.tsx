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
    default: { type: "object", title: "Default", description: '{"handle": "output", "value": …}' },
    retry: { type: "object", title: "Retry", description: '{"attempts": 3, "backoffS": 1}' },
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
