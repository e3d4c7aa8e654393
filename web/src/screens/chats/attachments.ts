/** What a message carries beside its text: an image, or a file. */
export type Attachment = {
  readonly kind: "image" | "file";
  readonly name: string;
  readonly mime: string;
  /** The content in base64. */
  readonly data: string;
};

/** Types of files that models read as text though their type does not begin with `text/`. */
const TEXT_TYPES: ReadonlySet<string> = new Set([
  "application/json",
  "application/xml",
  "application/yaml",
  "application/x-yaml",
]);
const TEXT_NAMES = /\.(txt|md|csv|tsv|json|ya?ml|toml|xml|html|css|[jt]sx?|py|sh|sql|log)$/i;

/** What the file dialog offers. */
export const ACCEPTED =
  "image/png,image/jpeg,image/gif,image/webp,text/*,.json,.yaml,.toml,.csv,.md";

/**
 * Read a chosen or pasted file.
 *
 * @throws {Error} It is neither an image nor a text; the message is for people.
 */
export async function readAttachment(file: File): Promise<Attachment> {
  const isImage = /^image\/(png|jpeg|gif|webp)$/.test(file.type);
  if (!isImage && !isText(file)) {
    throw new Error(
      `${file.name} is neither an image nor a text. Attach a PNG, JPEG or text file.`,
    );
  }
  const data = toBase64(new Uint8Array(await file.arrayBuffer()));
  const mime = file.type || "text/plain";
  return { kind: isImage ? "image" : "file", name: file.name, mime, data };
}

/** Return the parts of a request body that hold attachments. */
export function attachmentFields(attachments: readonly Attachment[]) {
  const files = ({ name, mime, data }: Attachment) => ({ name, mime, data });
  return {
    images: attachments.filter(({ kind }) => kind === "image").map(files),
    files: attachments.filter(({ kind }) => kind === "file").map(files),
  };
}

function isText({ type, name }: File): boolean {
  return type.startsWith("text/") || TEXT_TYPES.has(type) || (type === "" && TEXT_NAMES.test(name));
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  // One call takes so many arguments at most.
  for (let at = 0; at < bytes.length; at += 32_768) {
    text += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  }
  return btoa(text);
}
