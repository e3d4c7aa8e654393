import type { UserMessageRequest } from "@/api/types";
import { isObject } from "@/json";
import { fieldOf } from "@/stream/json";

type Shown = { readonly key: string; readonly name: string; readonly src: string | null };

/** What a message of the reader holds, for showing it and for sending it again. */
export type UserContent = {
  readonly text: string;
  /** Those from elsewhere have no `src`: the page loads nothing from other hosts. */
  readonly images: readonly Shown[];
  readonly files: readonly Shown[];
  /** As a request takes them. */
  readonly attachments: Pick<UserMessageRequest, "images" | "files">;
};

/** Read the blocks of a message of the reader. */
export function userContent(blocks: readonly unknown[]): UserContent {
  const of = (type: string) => blocks.filter((block) => fieldOf(block, "type") === type);
  const images = of("image").map((block) => fieldOf(block, "image"));
  const files = of("file").map((block) => fieldOf(block, "file"));
  return {
    text: of("text")
      .map((block) => String(fieldOf(block, "text") ?? ""))
      .join("\n\n"),
    images: images.map((image, index) => shown(image, `Image ${index + 1}`)),
    files: files.map((file, index) => shown(file, `File ${index + 1}`)),
    attachments: {
      images: images.filter((image) => typeof image === "string" || isObject(image)),
      files: files.filter(isObject),
    },
  };
}

function shown(source: unknown, fallback: string): Shown {
  const url = typeof source === "string" ? source : textField(source, "url");
  const data = textField(source, "data");
  const mime = textField(source, "mime") || "image/png";
  const own = data ? `data:${mime};base64,${data}` : url.startsWith("data:") ? url : null;
  const name = textField(source, "name") || (url.startsWith("http") ? url : fallback);
  return { key: `${name} ${url.length + data.length}`, name, src: own };
}

function textField(source: unknown, name: string): string {
  const value = fieldOf(source, name);
  return typeof value === "string" ? value : "";
}
