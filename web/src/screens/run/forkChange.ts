import { mergePatch } from "@/api/mergePatch";
import type { Operations } from "@/api/types";
import type { FormValue } from "@/ui/SchemaForm";

export type ForkKind = "rerun" | "settings" | "output";

export type StepSettings = { task: string; data: FormValue };

type ForkBody = NonNullable<Operations["forkExecution"]["body"]>;

/** Returns the body of a fork in which one step changes. */
export function forkChange(
  kind: ForkKind,
  id: string,
  values: { before: StepSettings; after: StepSettings; output: string },
): ForkBody {
  switch (kind) {
    case "rerun":
      return { rerun: [id] };
    case "settings":
      return { changes: { [id]: changedSettings(values.before, values.after) } };
    case "output":
      return { changes: { [id]: { outputs: { output: values.output } } } };
  }
}

function changedSettings(before: StepSettings, after: StepSettings) {
  const data = mergePatch(before.data, after.data);
  return after.task === before.task ? { data } : { description: after.task, data };
}
