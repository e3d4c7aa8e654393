import { useNode } from "@/api/queries";
import { writeJson } from "@/json";
import { Loaded } from "./Loaded";
import type { PartProps } from "./part";
import styles from "./parts.module.css";
import { Text } from "./Text";

/** What was sent to a model, word for word. */
export function PromptTab({ executionId, node }: PartProps) {
  const step = useNode(executionId, node.path);
  return (
    <Loaded query={step} label="Loading the prompt">
      {({ prompt }) => {
        const parts = partsOf(prompt);
        if (parts.length === 0) {
          return <p className={styles.quiet}>Nothing was sent to a model by this step.</p>;
        }
        return parts.map(([name, text]) => (
          <article className={styles.box} key={name}>
            <header>
              <b>{NAMES[name] ?? name}</b>
            </header>
            <Text text={text} />
          </article>
        ));
      }}
    </Loaded>
  );
}

const NAMES: Record<string, string> = { system: "System prompt", prompt: "Prompt" };
const SHOWN_ELSEWHERE = new Set(["provider", "model"]);

function partsOf(prompt: unknown): [string, string][] {
  if (typeof prompt === "string") return [["prompt", prompt]];
  if (typeof prompt !== "object" || prompt === null) return [];
  return Object.entries(prompt)
    .filter(([name, value]) => value !== null && value !== "" && !SHOWN_ELSEWHERE.has(name))
    .map(([name, value]) => [name, typeof value === "string" ? value : writeJson(value, 2)]);
}
