import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { useExecute } from "@/api/mutations";
import { useNodeTypes } from "@/api/queries";
import type { FlowResponse } from "@/api/types";
import { jsonOrText } from "@/inspector/answerDraft";
import { isObject, writeJson } from "@/json";
import { ErrorNote } from "@/screens/ErrorNote";
import type { RunOptions } from "@/screens/goal/goalDraft";
import { RunOptionsChip } from "@/screens/goal/RunOptionsChip";
import { Button } from "@/ui/Button";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import { type FormValue, SchemaForm } from "@/ui/SchemaForm";
import { useShortcuts } from "@/ui/shortcuts";
import styles from "./FlowScreen.module.css";
import { executionInputs, type FlowInput, inputKey, inputsOf, textsOf } from "./flowInputs";
import { InputSets } from "./InputSets";

/** Runs a flow with the inputs that its entry nodes take. */
export function RunFlow({ flow }: { flow: FlowResponse }) {
  const types = useNodeTypes();
  const inputs = inputsOf(flow.graph, types.data?.node_types ?? []);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [broken, setBroken] = useState<readonly string[]>([]);
  const [options, setOptions] = useState<RunOptions>({});
  const execute = useExecute();
  const navigate = useNavigate();
  const run = (event?: FormEvent) => {
    event?.preventDefault();
    if (execute.isPending || broken.length > 0) return;
    execute.mutate(
      {
        flow: flow.plan_id,
        revision: flow.revision,
        inputs: executionInputs(inputs, texts),
        options,
        start: true,
      },
      { onSuccess: (made) => navigate(`/runs/${made.execution_id}`) },
    );
  };
  useShortcuts("This flow", [{ keys: "mod+enter", does: "Run the flow", run: () => run() }]);
  return (
    <form className={styles.form} onSubmit={run} aria-label="Run the flow">
      {inputs.length > 0 && (
        <InputSets
          flowId={flow.plan_id}
          given={executionInputs(inputs, texts)}
          onChoose={(saved) => setTexts(textsOf(inputs, saved))}
        />
      )}
      {inputs.map((input) => (
        <InputField
          key={inputKey(input)}
          input={input}
          text={texts[inputKey(input)] ?? ""}
          onText={(text) => setTexts({ ...texts, [inputKey(input)]: text })}
          onBroken={(name, isBroken) => {
            const field = `${inputKey(input)} ${name}`;
            setBroken((now) => [
              ...now.filter((each) => each !== field),
              ...(isBroken ? [field] : []),
            ]);
          }}
        />
      ))}
      {types.data && inputs.length === 0 && (
        <p className={styles.faint}>It takes no input: no step is an entry, such as a start.</p>
      )}
      {execute.error && <ErrorNote error={execute.error} />}
      <div className={styles.start}>
        <RunOptionsChip options={options} onChange={setOptions} />
        <Button
          kind="primary"
          type="submit"
          icon="play"
          keys="Ctrl ↵"
          disabledReason={whyNot(execute.isPending, broken)}
        >
          Run
        </Button>
      </div>
    </form>
  );
}

function whyNot(isStarting: boolean, broken: readonly string[]): string | undefined {
  if (broken.length > 0) return "Correct the inputs";
  return isStarting ? "Starting" : undefined;
}

type InputFieldProps = {
  input: FlowInput;
  text: string;
  onText: (text: string) => void;
  onBroken: (name: string, isBroken: boolean) => void;
};

function InputField({ input, text, onText, onBroken }: InputFieldProps) {
  if (input.schema) {
    const value = jsonOrText(text || input.usual);
    return (
      <fieldset className={styles.fields}>
        <legend>{input.label}</legend>
        <SchemaForm
          schema={input.schema}
          value={isObject(value) ? (value as FormValue) : {}}
          onChange={(next) => onText(writeJson(next))}
          onBroken={onBroken}
        />
      </fieldset>
    );
  }
  const field = {
    label: input.label,
    value: text,
    placeholder: input.usual,
    onChange: (event: { target: { value: string } }) => onText(event.target.value),
  };
  if (input.type === "boolean") {
    return (
      <SelectField label={field.label} value={text} onChange={field.onChange}>
        <option value="">
          {input.usual ? `As in the flow: ${input.usual}` : "As in the flow"}
        </option>
        <option value="true">true</option>
        <option value="false">false</option>
      </SelectField>
    );
  }
  if (input.type === "number" || input.type === "integer") {
    return <TextField {...field} type="number" step={input.type === "number" ? "any" : 1} />;
  }
  const hint = input.type === "json" ? "JSON is passed on as JSON, anything else as text." : null;
  return <TextArea {...field} rows={4} hint={hint} />;
}
