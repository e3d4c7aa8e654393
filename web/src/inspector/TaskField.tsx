import { type ReactNode, useState } from "react";
import { TextArea } from "@/ui/Field";

type TaskFieldProps = {
  type: string;
  task: string;
  onChange: (task: string) => void;
  /** What can be done with words that are selected in it. */
  onWords?: ((words: string) => ReactNode) | undefined;
};

/** The task of a step. Only an agent reads it; elsewhere it is a description for people. */
export function TaskField({ type, task, onChange, onWords }: TaskFieldProps) {
  const [words, setWords] = useState("");
  return (
    <>
      <TextArea
        label="Task"
        hint={
          type === "agent"
            ? "Goal, task and inputs become the prompt."
            : "A description of the step; it does not change what the step does."
        }
        value={task}
        onChange={(event) => onChange(event.target.value)}
        onSelect={({ currentTarget: { value, selectionStart, selectionEnd } }) =>
          setWords(value.slice(selectionStart, selectionEnd).trim())
        }
      />
      {words !== "" && onWords && <div>{onWords(words)}</div>}
    </>
  );
}
