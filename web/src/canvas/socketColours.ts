import type { EdgeDocument, GraphDocument, NodeTypesResponse } from "@/api/types";

/** Returns the colour of each socket type, on light and dark pages, as the service gives it. */
export function socketColours(types: NodeTypesResponse | undefined): (type: string) => string {
  const sockets = new Map(types?.socket_types.map((socket) => [socket.type, socket]));
  return (type) => {
    const socket = sockets.get(type) ?? sockets.get("any");
    return socket ? `light-dark(${socket.color}, ${socket.dark_color})` : "var(--socket-data)";
  };
}

/** Returns the colour of each link of a graph: that of the socket that it comes from. */
export function linkColours(
  graph: GraphDocument,
  types: NodeTypesResponse | undefined,
): (edge: EdgeDocument) => string | undefined {
  const colourOf = socketColours(types);
  const typeOf = new Map(graph.nodes.map(({ id, type }) => [id, type]));
  return (edge) => {
    const type = types?.node_types.find(({ node_type }) => node_type === typeOf.get(edge.source));
    const port = type?.outputs.find(
      ({ name, channel }) => name === edge.sourceHandle && channel === "link",
    );
    return port && edge.data.channel === "link" ? colourOf(port.type) : undefined;
  };
}
