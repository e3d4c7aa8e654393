import { Tag } from "@/ui/Tag";
import type { RequestedTool } from "./requestFields";
import styles from "./ToolAbout.module.css";

/** What a tool is, by the kind of its call. */
export const TOOL_KINDS: Readonly<Record<string, string>> = {
  tool: "tool",
  mcp: "MCP tool",
  http: "web service",
  flow: "flow",
  agent: "agent",
};

/** What a call does to the world. */
export const EFFECT_WORDS: Readonly<Record<string, string>> = {
  none: "It changes nothing.",
  read: "It only reads.",
  write: "It changes something; the same call again changes nothing more.",
  once: "It acts on the world, and must not act twice.",
};

type ToolAboutProps = {
  tool: RequestedTool;
  /** The name stands in the question. */
  withoutName?: boolean;
};

/** The tool that an agent wants to call: its name, where it is from, and what a call does. */
export function ToolAbout({ tool, withoutName = false }: ToolAboutProps) {
  return (
    <p className={styles.about}>
      {!withoutName && <code>{tool.name}</code>}
      <Tag>{TOOL_KINDS[tool.kind] ?? tool.kind}</Tag>
      {tool.details.map(([label, value]) => (
        <span key={label}>
          {label} {value}
        </span>
      ))}
      {EFFECT_WORDS[tool.effect] && <span>{EFFECT_WORDS[tool.effect]}</span>}
    </p>
  );
}
