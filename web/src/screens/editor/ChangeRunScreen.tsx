import { useEffect, useMemo, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { useStore } from "zustand";
import { ApiError } from "@/api/http";
import { useRevise } from "@/api/mutations";
import type { CheckResponse, DiagnosticResponse, GraphDocument, Issue } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { RunProvider, useRun, useRunConnection } from "@/stream/RunProvider";
import type { RunState } from "@/stream/runState";
import { Button, ButtonLink } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { Note } from "@/ui/Note";
import { Skeleton } from "@/ui/Skeleton";
import { showToast } from "@/ui/toasts";
import styles from "./ChangeRunScreen.module.css";
import screen from "./EditorScreen.module.css";
import { createEditorStore, type EditorStore, type SavedPlan } from "./editorStore";
import { type FixedSteps, fixedSteps } from "./fixedSteps";
import { GraphEditor, useGraphCheck } from "./GraphEditor";
import header from "./GraphEditor.module.css";
import { guardUnsaved } from "./useAutosave";

/** The editor of the plan of a run that goes on: what has begun is fixed, all else can be changed. */
export function ChangeRunScreen() {
  const { executionId = "" } = useParams();
  return (
    <RunProvider key={executionId} executionId={executionId} waiting={<Loading />}>
      <Opened />
    </RunProvider>
  );
}

function Opened() {
  const run = useRun((state) => state);
  const { connection } = useRunConnection();
  if (run.graph !== null) return <RunEditor run={run} graph={run.graph} />;
  if (connection.kind !== "refused") return <Loading />;
  return (
    <div className={screen.message}>
      <h1>Run</h1>
      <ErrorNote error={connection.error} />
      <Link to="/runs">All runs</Link>
    </div>
  );
}

function Loading() {
  return (
    <div className={screen.message}>
      <Skeleton label="Loading the run" lines={6} />
    </div>
  );
}

function RunEditor({ run, graph }: { run: RunState; graph: GraphDocument }) {
  const [store] = useState(() => createEditorStore(planOf(run, graph)));
  const { content, saved } = useStore(store);
  const [note, setNote] = useState("");
  const fixed = useFixedSteps(run);
  const { check, errors } = useGraphCheck(store, "");
  const saving = useSaving(run, store, note);
  const isChanged = store.unsaved().length > 0;
  const isOld = saving.isOld || (!saving.isSaving && (run.planHash ?? "") !== saved.hash);
  const save = () => void saving.save();
  const blocked = whyNot(run, isOld, isChanged, errors);
  useEffect(() => guardUnsaved(store), [store]);
  return (
    <GraphEditor
      store={store}
      check={withRefusals(check, saving.refusedOf(content.graph))}
      comparison={{ nodes: saved.graph.nodes }}
      fixed={fixed}
      onEnter={{ does: "Change the run", run: () => blocked || save() }}
      title={
        <div className={header.title}>
          <h1 title={run.title}>Change this run: {run.title || run.goal}</h1>
        </div>
      }
      actions={
        <>
          <ButtonLink to={`/runs/${run.executionId}`}>Back to the run</ButtonLink>
          <Button
            kind="primary"
            keys="Ctrl ↵"
            onClick={save}
            disabledReason={blocked || (saving.isSaving ? "Saving …" : undefined)}
          >
            Change the run
          </Button>
        </>
      }
    >
      <div className={styles.bar}>
        <p>
          The run goes on while you change it. Steps with a lock have begun, or decided what has:
          they stay. All others can be changed, rewired and taken out, and new ones added.
        </p>
        <TextField
          label="Why"
          hint="Kept with the change."
          maxLength={500}
          value={note}
          onChange={(event) => setNote(event.target.value)}
        />
      </div>
      <Meanwhile
        run={run}
        isOld={isOld}
        onLoad={() => {
          store.rebase(planOf(run, graph));
          saving.forget();
        }}
      />
      {saving.error && <ErrorNote error={saving.error} />}
    </GraphEditor>
  );
}

/** Returns why the change cannot be made now, if so. */
function whyNot(run: RunState, isOld: boolean, isChanged: boolean, errors: string | undefined) {
  if (run.endedAt !== null) return "The run has ended";
  if (isOld) return "Load the run again first";
  if (!isChanged) return "Nothing is changed yet";
  return errors && `Fix ${errors} first`;
}

/** What has happened to the run since it was opened, and the way on. */
function Meanwhile(props: { run: RunState; isOld: boolean; onLoad: () => void }) {
  const { run, isOld, onLoad } = props;
  if (run.endedAt !== null) {
    return (
      <Note kind="warning" alert>
        The run has ended meanwhile, so it cannot be changed any more.{" "}
        <Link to={`/runs/${run.executionId}`}>Open the run</Link>
      </Note>
    );
  }
  if (!isOld) return null;
  return (
    <Note kind="warning" alert>
      This run was changed meanwhile.{" "}
      <Button small onClick={onLoad}>
        Load it again, with your changes on top
      </Button>
    </Note>
  );
}

function planOf({ title, goal, planHash, changes }: RunState, graph: GraphDocument): SavedPlan {
  return {
    title: title || goal,
    graph,
    imported: undefined,
    hash: planHash ?? "",
    revision: changes.length,
  };
}

/** The fixed steps, as long as they are the same: a run says something new many times a second. */
function useFixedSteps(run: RunState): FixedSteps {
  const { graph, nodes } = run;
  const [known, setKnown] = useState(() => fixedSteps({ graph, nodes }));
  const now = useMemo(() => fixedSteps({ graph, nodes }), [graph, nodes]);
  const isSame =
    now.size === known.size && [...now].every(([id, { why }]) => known.get(id)?.why === why);
  if (isSame) return known;
  setKnown(now);
  return now;
}

type Refused = { graph: GraphDocument; found: DiagnosticResponse[] };

/** Sends the changed graph; what the service refuses is said at its steps until the graph is changed again. */
function useSaving(run: RunState, store: EditorStore, note: string) {
  const revise = useRevise(run.executionId);
  const navigate = useNavigate();
  const [refused, setRefused] = useState<Refused | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isOld, setOld] = useState(false);
  const fail = (fault: unknown, graph: GraphDocument) => {
    const isApi = fault instanceof ApiError;
    if (isApi && fault.status === 412) setOld(true);
    else if (isApi && fault.issues && fault.issues.length > 0)
      setRefused({ graph, found: fault.issues.map(diagnosticOf) });
    else setError(fault instanceof Error ? fault : new Error(String(fault)));
  };
  const save = async () => {
    const { content, saved } = store.getState();
    setError(null);
    try {
      await revise.mutateAsync({ hash: saved.hash, body: { graph: content.graph, note } });
      store.accept({ ...saved, graph: content.graph }, content);
      showToast({ text: "The run goes on with the changed plan." });
      navigate(`/runs/${run.executionId}`);
    } catch (fault) {
      fail(fault, content.graph);
    }
  };
  return {
    save,
    error,
    isOld,
    isSaving: revise.isPending,
    forget: () => setOld(false),
    refusedOf: (graph: GraphDocument) => (refused?.graph === graph ? refused.found : []),
  };
}

function diagnosticOf({ code, message, pointer, hint, node }: Issue): DiagnosticResponse {
  return {
    code,
    severity: "error",
    message,
    pointer: pointer.replace(/^\/graph(?=\/|$)/, ""),
    ...(hint && { hint }),
    ...(node && { node }),
  };
}

function withRefusals(
  check: CheckResponse | undefined,
  refused: readonly DiagnosticResponse[],
): CheckResponse | undefined {
  if (!check || refused.length === 0) return check;
  return { ...check, diagnostics: [...refused, ...check.diagnostics] };
}
