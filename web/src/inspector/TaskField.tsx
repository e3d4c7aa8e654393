import { TextArea } from "@/ui/Field";

type TaskFieldProps = { type: string; task: string; onChange: (task: string) => void };

/** The task of a step. Only an agent reads it; elsewhere it is a description for people. */
export function TaskField({ type, task, onChange }: TaskFieldProps) {
  return (
    <TextArea
      label="Task"
      hint={
        type === "agent"
          ? "Goal, task and inputs become the prompt."
          : "A description of the step; it does not change what the step does."
      }
      value={task}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
