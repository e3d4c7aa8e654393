import type {
  AdditionDocument,
  ElementDifference,
  FieldDifference,
  GraphDocument,
  RevisionDiffResponse,
} from "@/api/types";
import { isObject, writeJson } from "@/json";
import { IconButton } from "@/ui/IconButton";
import { Note } from "@/ui/Note";
import { useShortcuts } from "@/ui/shortcuts";
import { Tag } from "@/ui/Tag";
import styles from "./RevisionDiff.module.css";

type RevisionDiffProps = {
  diff: RevisionDiffResponse;
  /** The plan, for the names of its steps. */
  graph: GraphDocument;
  onClose: () => void;
};

/** What differs between two revisions, field by field. */
export function RevisionDiff({ diff, graph, onClose }: RevisionDiffProps) {
  useShortcuts("The comparison", [{ keys: "escape", does: "Close it", run: onClose }]);
  const isSame = diff.nodes.length + diff.edges.length === 0 && diff.title === null;
  return (
    <section className={styles.panel} aria-label={`Revision ${diff.a} to ${diff.b}`}>
      <header>
        <h2>
          Revision {diff.a} to {diff.b}
        </h2>
        <IconButton icon="close" label="Close the comparison" keys="Esc" small onClick={onClose} />
      </header>
      {isSame && <p>They are the same.</p>}
      <Differences diff={diff} graph={graph} />
    </section>
  );
}

type DifferencesProps = {
  diff: Pick<RevisionDiffResponse, "title" | "nodes" | "edges">;
  /** The plan, for the names of its steps. */
  graph: GraphDocument;
  /** Whether values are whole, and new steps have all their fields: of what a person is to take. */
  isWhole?: boolean;
};

/** What differs between two graphs, field by field. */
export function Differences({ diff, graph, isWhole = false }: DifferencesProps) {
  const names = new Map(graph.nodes.map(({ id, name }) => [id, name || id]));
  // The plan has no name of a step that was removed, or is not there yet.
  for (const { id, before, after } of diff.nodes) {
    const name = (after ?? before)?.name;
    if (id && typeof name === "string" && !names.has(id)) names.set(id, name);
  }
  const nameOf = (id: string) => names.get(id) ?? id;
  return (
    <div className={styles.differences}>
      {diff.title && (
        <p>
          Title: <del>{diff.title[0]}</del> <ins>{diff.title[1]}</ins>
        </p>
      )}
      <ul>
        {diff.nodes.map((each) => (
          <Element key={each.id} element={each} name={stepName(each, nameOf)} isWhole={isWhole} />
        ))}
        {diff.edges.map((each, index) => (
          <Element
            key={`${each.id ?? index} ${each.change}`}
            element={each}
            name={edgeName(each, graph, nameOf)}
            isWhole={isWhole}
          />
        ))}
      </ul>
    </div>
  );
}

/** What a plan would reach by a change that it does not yet, or what would guard it no more. */
export function Reach({
  words,
  additions,
}: {
  words: string;
  additions: readonly AdditionDocument[];
}) {
  if (additions.length === 0) return null;
  return (
    <Note kind="warning">
      {words}
      <ul>
        {additions.map(({ kind, name, node }) => (
          <li key={`${kind} ${name} ${node}`}>
            {kind} <b>{name}</b> in {node}
          </li>
        ))}
      </ul>
    </Note>
  );
}

const SIGNS = {
  added: { kind: "add", sign: "+" },
  removed: { kind: "remove", sign: "−" },
  changed: { kind: "change", sign: "~" },
} as const;

type NameOf = (id: string) => string;

function stepName({ id, after, before }: ElementDifference, nameOf: NameOf): string {
  const name = (after ?? before)?.name;
  return typeof name === "string" && name ? name : nameOf(id ?? "");
}

/** Returns "Facts → Draft": people know an edge by its ends. */
function edgeName(edge: ElementDifference, { edges }: GraphDocument, nameOf: NameOf): string {
  const present = edges.find((each) => each.id === edge.id);
  const { source, target } = edge.after ?? edge.before ?? present ?? {};
  if (typeof source !== "string" || typeof target !== "string") return edge.id ?? "an edge";
  return `${nameOf(source)} → ${nameOf(target)}`;
}

type ElementProps = { element: ElementDifference; name: string; isWhole: boolean };

function Element({ element, name, isWhole }: ElementProps) {
  const { kind, sign } = SIGNS[element.change];
  const said = isWhole ? fieldsOf(element.after ?? {}) : [];
  const show = isWhole ? textOf : shorten;
  return (
    <li>
      <Tag kind={kind}>{sign}</Tag>
      <span className="visually-hidden">{element.change}: </span>
      <b>{name}</b>
      <ul>
        {(element.fields ?? said).map((field) => (
          <li key={field.pointer}>
            <code>
              {field.pointer.slice(1).replaceAll("/", ".")} <del>{show(field.before)}</del>{" "}
              <ins>{show(field.after)}</ins>
            </code>
          </li>
        ))}
      </ul>
    </li>
  );
}

/** Of a new step or edge, what its name does not say. */
const SAID: ReadonlySet<string> = new Set(["id", "name", "source", "target", "ui"]);

/** What most wires have. */
const USUAL: ReadonlyMap<string, unknown> = new Map([
  ["/sourceHandle", "output"],
  ["/targetHandle", "input"],
  ["/data/channel", "flow"],
]);

/** Returns what a new step or edge has, as differences to nothing: its data field by field. */
function fieldsOf(element: Record<string, unknown>): FieldDifference[] {
  return Object.entries(element)
    .flatMap(([name, after]) => {
      if (SAID.has(name) || isNothing(after)) return [];
      if (!isObject(after)) return [{ pointer: `/${name}`, after }];
      return Object.entries(after).map(([field, value]) => ({
        pointer: `/${name}/${field}`,
        after: value,
      }));
    })
    .filter(({ pointer, after }) => USUAL.get(pointer) !== after);
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined || value === "";
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : writeJson(value);
}

/** Characters of a value that are shown. */
const LONGEST = 200;

function shorten(value: unknown): string {
  const text = textOf(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}
