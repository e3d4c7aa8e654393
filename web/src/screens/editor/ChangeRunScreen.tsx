import { type ReactNode, useEffect, useMemo, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { useStore } from "zustand";
import { ApiError } from "@/api/http";
import { useFork, useReplanRun, useRevise } from "@/api/mutations";
import type {
  CheckResponse,
  DiagnosticResponse,
  GraphDocument,
  Issue,
  ReplanResponse,
} from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { changeObstacle } from "@/screens/run/changeObstacle";
import { RunProvider, useRun, useRunConnection } from "@/stream/RunProvider";
import type { RunState } from "@/stream/runState";
import { Button, ButtonLink } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { Note } from "@/ui/Note";
import { Segmented } from "@/ui/Segmented";
import { Skeleton } from "@/ui/Skeleton";
import { showToast } from "@/ui/toasts";
import { ChangeInWords } from "./ChangeInWords";
import styles from "./ChangeRunScreen.module.css";
import screen from "./EditorScreen.module.css";
import { createEditorStore, type EditorStore, type SavedPlan } from "./editorStore";
import { type FixedSteps, fixedSteps, notRunAgain } from "./fixedSteps";
import { GraphEditor, useGraphCheck } from "./GraphEditor";
import header from "./GraphEditor.module.css";
import { guardUnsaved } from "./useAutosave";

/** The editor of the plan of a run that goes on: what has begun is fixed, all else can be changed. Of one that has ended,
 * words are turned into the plan of a fork. */
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

type Way = "hand" | "words";

const WAYS: readonly { value: Way; label: string }[] = [
  { value: "hand", label: "By hand" },
  { value: "words", label: "In words" },
];

function RunEditor({ run, graph }: { run: RunState; graph: GraphDocument }) {
  const [store] = useState(() => createEditorStore(planOf(run, graph)));
  const isChanged = useStore(store, () => store.unsaved().length > 0);
  const hasEnded = run.endedAt !== null;
  const [way, setWay] = useState<Way>(hasEnded ? "words" : "hand");
  const [words, setWords] = useState("");
  const [note, setNote] = useState("");
  const saving = useSaving(run, store);
  const fork = useFork(run.executionId);
  const replan = useReplanRun(run.executionId);
  const navigate = useNavigate();
  const obstacle = changeObstacle(run);
  useEffect(() => guardUnsaved(store), [store]);
  const rebase = () => {
    store.rebase(planOf(run, graph));
    saving.forget();
  };
  const page = {
    ...{ run, store, saving, obstacle, rebase },
    title: (
      <div className={header.title}>
        <h1 title={run.title}>Change this run: {run.title || run.goal}</h1>
      </div>
    ),
    back: <ButtonLink to={`/runs/${run.executionId}`}>Back to the run</ButtonLink>,
    choice: <Segmented label="Change it" value={way} options={WAYS} onChange={setWay} />,
  };
  if (way === "hand") return <ChangeByHand {...page} {...{ note }} onNote={setNote} />;
  const mine = isChanged ? "Make or undo your own changes first" : undefined;
  const saves = saving.isSaving || replan.isPending ? "Saving …" : undefined;
  const starts = fork.isPending ? "Starting …" : undefined;
  const error = hasEnded ? fork.error : (replan.error ?? saving.error);
  const ask = () => {
    saving.forget();
    replan.mutate(
      { hash: run.planHash ?? "", request: words },
      { onSuccess: () => navigate(`/runs/${run.executionId}`) },
    );
  };
  const take = (proposal: ReplanResponse) => {
    if (hasEnded)
      fork.mutate(
        { graph: proposal.graph, start: true },
        { onSuccess: (made) => navigate(`/runs/${made.execution_id}`) },
      );
    else void saving.save(proposal.base, proposal.graph, noteOf(proposal));
  };
  return (
    <ChangeInWords
      {...{ run, graph, words }}
      onWords={setWords}
      choice={hasEnded ? null : page.choice}
      blocked={hasEnded ? starts : (obstacle ?? mine ?? saves)}
      isOld={saving.isOld}
      onAsk={hasEnded ? undefined : ask}
      onTake={take}
      onEdit={(proposal) => {
        rebase();
        store.changeGraph(proposal.graph);
        setNote(noteOf(proposal));
        setWay("hand");
      }}
      onAgain={() => {
        rebase();
        fork.reset();
        replan.reset();
      }}
      header={(action) => (
        <header className={header.header}>
          {page.title}
          <div className={header.actions}>
            {page.back}
            {action}
          </div>
        </header>
      )}
    >
      {hasEnded && (
        <Note>
          This run has ended, so a change makes a new one of it, a fork: steps that stay as they are
          lend it their results and cost nothing.
        </Note>
      )}
      {error && <ErrorNote error={error} />}
    </ChangeInWords>
  );
}

type ChangeByHandProps = {
  run: RunState;
  store: EditorStore;
  saving: ReturnType<typeof useSaving>;
  obstacle: string | undefined;
  /** Puts own changes on top of what the run is now. */
  rebase: () => void;
  title: ReactNode;
  back: ReactNode;
  choice: ReactNode;
  note: string;
  onNote: (note: string) => void;
};

function ChangeByHand(props: ChangeByHandProps) {
  const { run, store, saving, obstacle, rebase, note, onNote } = props;
  const { content, saved } = useStore(store);
  const fixed = useFixedSteps(run);
  const { check, errors } = useGraphCheck(store, "");
  const hash = run.planHash ?? "";
  const isOld = saving.isOld || (!saving.isSaving && hash !== saved.hash);
  const blocked = obstacle ?? whyNot(isOld, store.unsaved().length > 0, errors);
  const save = () => void saving.save(saved.hash, content.graph, note);
  return (
    <GraphEditor
      store={store}
      check={withRefusals(check, saving.refusedOf(content.graph))}
      comparison={{ nodes: saved.graph.nodes }}
      fixed={fixed}
      onEnter={{ does: "Change the run", run: () => blocked || save() }}
      title={props.title}
      actions={
        <>
          {props.back}
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
        {props.choice}
        <p>
          The run goes on while you change it. Steps with a lock have begun, or decided what has:
          they stay. All others can be changed, rewired and taken out, and new ones added.{" "}
          {notRunAgain(run)}
        </p>
        <TextField
          label="Why"
          hint="Kept with the change."
          maxLength={500}
          value={note}
          onChange={(event) => onNote(event.target.value)}
        />
      </div>
      {/* A refusal may come before the change of others is here. */}
      <Meanwhile run={run} isOld={isOld} onLoad={hash === saved.hash ? undefined : rebase} />
      {saving.error && <ErrorNote error={saving.error} />}
    </GraphEditor>
  );
}

/** The most that the service keeps of why a change was made. */
const NOTE_CHARS = 1_000;

function noteOf({ request }: ReplanResponse): string {
  return `in words: ${request}`.slice(0, NOTE_CHARS);
}

/** Returns why the change cannot be made now, if so. */
function whyNot(isOld: boolean, isChanged: boolean, errors: string | undefined) {
  if (isOld) return "Load the run again first";
  if (!isChanged) return "Nothing is changed yet";
  return errors && `Fix ${errors} first`;
}

type MeanwhileProps = {
  run: RunState;
  isOld: boolean;
  /** Undefined until the change of others is here. */
  onLoad: (() => void) | undefined;
};

/** What has happened to the run since it was opened, and the way on. */
function Meanwhile({ run, isOld, onLoad }: MeanwhileProps) {
  if (run.endedAt !== null) return <HasEnded run={run} />;
  if (!isOld) return null;
  return (
    <Note kind="warning" alert>
      This run was changed meanwhile.{" "}
      <Button small onClick={onLoad} disabledReason={onLoad ? undefined : "Reading it …"}>
        Load it again, with your changes on top
      </Button>
    </Note>
  );
}

function HasEnded({ run }: { run: RunState }) {
  return (
    <Note kind="warning" alert>
      The run has ended meanwhile, so it cannot be changed any more; in words you can fork it.{" "}
      <Link to={`/runs/${run.executionId}`}>Open the run</Link>
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
function useSaving(run: RunState, store: EditorStore) {
  const revise = useRevise(run.executionId);
  const navigate = useNavigate();
  const [refused, setRefused] = useState<Refused | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isOld, setOld] = useState(false);
  const fail = (fault: unknown, graph: GraphDocument) => {
    const isApi = fault instanceof ApiError;
    if (isApi && fault.status === 412) setOld(true);
    else if (isApi && fault.issues.length > 0 && graph === store.getState().content.graph)
      setRefused({ graph, found: fault.issues.map(diagnosticOf) });
    else setError(fault instanceof Error ? fault : new Error(String(fault)));
  };
  const save = async (hash: string, graph: GraphDocument, note: string) => {
    const { content, saved } = store.getState();
    setError(null);
    try {
      const { request_id } = await revise.mutateAsync({ hash, body: { graph, note } });
      if (graph === content.graph) store.accept({ ...saved, graph }, content);
      showToast({
        text: request_id
          ? "The change waits for an approval, as the plan needs one."
          : "The run goes on with the changed plan.",
      });
      navigate(`/runs/${run.executionId}`);
    } catch (fault) {
      fail(fault, graph);
    }
  };
  return {
    save,
    error,
    isOld,
    isSaving: revise.isPending,
    forget: () => {
      setOld(false);
      setError(null);
    },
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
