import { useState } from "react";
import { useNavigate } from "react-router";
import { useCheck } from "@/api/checks";
import { errorText } from "@/api/errorText";
import { useFork } from "@/api/mutations";
import { useNodeTypes } from "@/api/queries";
import type { GraphDocument } from "@/api/types";
import { TaskField } from "@/inspector/TaskField";
import type { RunState } from "@/stream/runState";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { SelectField, TextArea } from "@/ui/Field";
import { Note } from "@/ui/Note";
import { SchemaForm } from "@/ui/SchemaForm";
import { Segmented } from "@/ui/Segmented";
import styles from "./ForkDialog.module.css";
import { type ForkKind, forkChange, type StepSettings } from "./forkChange";
import { type ForkEffect, forkEffects } from "./forkEffects";

type ForkDialogProps = {
  run: RunState;
  /** The step that is changed first. */
  path: string | null;
  onClose: () => void;
};

const KINDS: readonly { value: ForkKind; label: string }[] = [
  { value: "rerun", label: "Run it again" },
  { value: "settings", label: "Change its settings" },
  { value: "output", label: "Give its result" },
];

/** Makes a new run out of this one: one step changes, and only what depends on it runs again. */
export function ForkDialog({ run, path, onClose }: ForkDialogProps) {
  const nodes = run.graph?.nodes ?? [];
  const [id, setId] = useState(path ?? nodes[0]?.id ?? "");
  const [kind, setKind] = useState<ForkKind>(path ? "settings" : "rerun");
  const node = nodes.find((each) => each.id === id);
  const before: StepSettings = { task: node?.description ?? "", data: node?.data ?? {} };
  const [edited, setEdited] = useState<Record<string, StepSettings>>({});
  const after = edited[id] ?? before;
  const [output, setOutput] = useState("");
  const fork = useFork(run.executionId);
  const navigate = useNavigate();
  const start = () =>
    fork.mutate(
      { ...forkChange(kind, id, { before, after, output }), start: true },
      { onSuccess: (made) => navigate(`/runs/${made.execution_id}`) },
    );
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title="Fork this run"
      description="A new run starts. Steps that do not depend on the change are reused and cost nothing; this run stays as it is."
      footer={
        <Button
          kind="primary"
          icon="fork"
          onClick={start}
          disabledReason={fork.isPending ? "Starting …" : undefined}
        >
          Fork and run
        </Button>
      }
    >
      <div className={styles.form}>
        <SelectField label="Step" value={id} onChange={(event) => setId(event.target.value)}>
          {nodes.map((each) => (
            <option key={each.id} value={each.id}>
              {each.name ?? each.id}
            </option>
          ))}
        </SelectField>
        <Segmented label="What changes" value={kind} options={KINDS} onChange={setKind} />
        {kind === "settings" && (
          <SettingsForm
            type={node?.type ?? ""}
            settings={after}
            onChange={(next) => setEdited({ ...edited, [id]: next })}
          />
        )}
        {kind === "output" && (
          <TextArea
            label="Result"
            hint="The step does not run; the next ones get this text."
            rows={6}
            value={output}
            onChange={(event) => setOutput(event.target.value)}
          />
        )}
        {run.graph && <Effects graph={run.graph} kind={kind} id={id} />}
        {fork.error && (
          <Note kind="error" alert>
            {errorText(fork.error)}
          </Note>
        )}
      </div>
    </Dialog>
  );
}

/** What acts on the world if it runs again, as the service says. */
function Effects({ graph, kind, id }: { graph: GraphDocument; kind: ForkKind; id: string }) {
  const check = useCheck(graph);
  const found = forkEffects(graph, check.data?.forecast?.effects ?? [], kind, id);
  if (found.length === 0) return null;
  const namesOf = (chosen: (each: ForkEffect) => boolean) =>
    NAMES.format(found.filter(chosen).map(({ name }) => name));
  const others = namesOf(({ effect }) => effect !== "once");
  const once = namesOf(({ effect }) => effect === "once");
  return (
    <Note kind="warning">
      {others && <p>{others} may change something again.</p>}
      {once && (
        <p>
          {once} must act only once. Where that has happened in this run, you are asked before it
          happens again.
        </p>
      )}
    </Note>
  );
}

const NAMES = new Intl.ListFormat("en");

type SettingsFormProps = {
  type: string;
  settings: StepSettings;
  onChange: (settings: StepSettings) => void;
};

function SettingsForm({ type, settings, onChange }: SettingsFormProps) {
  const types = useNodeTypes();
  const schema = types.data?.node_types.find((each) => each.node_type === type)?.schema;
  return (
    <>
      <TaskField
        type={type}
        task={settings.task}
        onChange={(task) => onChange({ ...settings, task })}
      />
      {schema ? (
        <SchemaForm
          schema={schema}
          value={settings.data}
          onChange={(data) => onChange({ ...settings, data })}
        />
      ) : (
        <p>{types.isPending ? "Loading its settings …" : `The type ${type} is not loaded here.`}</p>
      )}
    </>
  );
}
