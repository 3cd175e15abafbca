"""Mesh files of VTK (through pyvista) and of meshio: writes them in every variant, and compares what lamo made of them.

    python outside.py write DIR      writes files
    python outside.py compare DIR    of each DIR/F, compares every DIR/made/F.VARIANT.ENDING with it
    python outside.py fixtures DIR   writes the few small files that lie beside this one
"""

import sys
from pathlib import Path

import meshio
import numpy as np
import pyvista as pv
import vtk

np.set_printoptions(legacy="1.25")  # meshio writes the representation of numbers
random = np.random.default_rng(0)


def dress(mesh):
    """Arrays of many types."""
    for data, count in ((mesh.point_data, mesh.n_points), (mesh.cell_data, mesh.n_cells)):
        if count == 0:
            continue
        data["p"] = random.normal(size=count).astype(np.float32)
        data["mean U"] = random.normal(size=(count, 3)) * 1e-7
        data["region"] = random.integers(-5, 5, count).astype(np.int32)
        data["number"] = random.integers(0, 2**40, count)
        data["mark"] = random.integers(0, 255, count).astype(np.uint8)
        data["short"] = random.integers(-9, 9, count).astype(np.int16)
    mesh.field_data["TimeValue"] = np.array([0.25])
    mesh.field_data["steps"] = np.arange(5, dtype=np.int32)
    mesh.field_data["note"] = ["written by pyvista", "two words"]
    return mesh


def unstructured():
    points = random.random((40, 3)).astype(np.float32)
    counts = [(12, 8), (10, 4), (13, 6), (14, 5), (9, 4), (5, 3), (3, 2), (1, 1), (24, 10), (25, 20), (7, 5), (11, 8), (4, 3)]
    cells, kinds = [], []
    for _ in range(3):
        for kind, size in counts:
            cells += [size, *random.permutation(40)[:size]]
            kinds.append(kind)
    return dress(pv.UnstructuredGrid(np.array(cells), np.array(kinds, np.uint8), points))


def polyhedra():
    box = [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [3, 7, 6, 2], [0, 4, 7, 3], [1, 2, 6, 5]]
    faces = [6] + [number for face in box for number in [4, *face]]
    tetrahedron = [4, 3, 4, 5, 8, 3, 5, 6, 8, 3, 6, 4, 8, 3, 4, 6, 5]
    cells = [len(faces), *faces, 4, 4, 5, 6, 8, len(tetrahedron), *tetrahedron]
    points = np.array([[x, y, z] for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))] + [[0.5, 0.5, 2]], float)
    return dress(pv.UnstructuredGrid(np.array(cells), np.array([42, 10, 42], np.uint8), points))


def surface(strips=True):
    points = random.random((20, 3))
    mesh = pv.PolyData()
    mesh.points = points
    mesh.verts = [1, 0, 2, 3, 4]
    mesh.lines = [2, 5, 6, 4, 7, 8, 9, 10]
    mesh.faces = [3, 0, 1, 2, 4, 3, 4, 5, 6, 5, 7, 8, 9, 10, 11]
    if strips:
        mesh.strips = [5, 12, 13, 14, 15, 16]
    return dress(mesh)


def image():
    mesh = pv.ImageData(dimensions=(4, 3, 5), spacing=(0.1, 0.2, 0.3), origin=(1.0, -2.0, 3.0))
    return dress(mesh)


def turned():
    mesh = pv.ImageData(dimensions=(4, 3, 2), spacing=(0.5, 0.25, 2.0), origin=(1.0, -2.0, 3.0))
    mesh.SetDirectionMatrix(0, -1, 0, 1, 0, 0, 0, 0, 1)
    return dress(mesh)


def shifted():
    mesh = pv.ImageData(spacing=(0.5, 0.25, 2.0), origin=(1.0, -2.0, 3.0))
    mesh.extent = (2, 5, -1, 3, 0, 0)
    return dress(mesh)


def rectilinear():
    x, y, z = np.cumsum(random.random(4)), np.cumsum(random.random(3)), np.cumsum(random.random(6)).astype(np.float64)
    return dress(pv.RectilinearGrid(x, y, z))


def structured(layers):
    x, y, z = np.meshgrid(np.arange(4.0), np.arange(3.0), np.arange(float(layers)), indexing="ij")
    return dress(pv.StructuredGrid(x + 0.1 * y, y + 0.05 * x * x, z))


MESHES = {
    "cells": (unstructured, "vtu", vtk.vtkXMLUnstructuredGridWriter, vtk.vtkUnstructuredGridWriter),
    "polyhedra": (polyhedra, "vtu", vtk.vtkXMLUnstructuredGridWriter, vtk.vtkUnstructuredGridWriter),
    "surface": (surface, "vtp", vtk.vtkXMLPolyDataWriter, vtk.vtkPolyDataWriter),
    "image": (image, "vti", vtk.vtkXMLImageDataWriter, vtk.vtkStructuredPointsWriter),
    "turned": (turned, "vti", vtk.vtkXMLImageDataWriter, None),
    "shifted": (shifted, "vti", vtk.vtkXMLImageDataWriter, None),
    "rectilinear": (rectilinear, "vtr", vtk.vtkXMLRectilinearGridWriter, vtk.vtkRectilinearGridWriter),
    "structured": (lambda: structured(4), "vts", vtk.vtkXMLStructuredGridWriter, vtk.vtkStructuredGridWriter),
    "flat": (lambda: structured(1), "vts", vtk.vtkXMLStructuredGridWriter, vtk.vtkStructuredGridWriter),
    "empty": (pv.UnstructuredGrid, "vtu", vtk.vtkXMLUnstructuredGridWriter, vtk.vtkUnstructuredGridWriter),
}


def write_xml(writer, mesh, path, mode, encoded, packed, long, little, pieces=1):
    writer = writer()
    writer.SetInputData(mesh)
    writer.SetFileName(str(path))
    writer.SetDataMode(mode)
    writer.SetEncodeAppendedData(encoded)
    {False: writer.SetCompressorTypeToNone, True: writer.SetCompressorTypeToZLib, "lz4": writer.SetCompressorTypeToLZ4}[packed]()
    writer.SetBlockSize(64)
    writer.SetHeaderTypeToUInt64() if long else writer.SetHeaderTypeToUInt32()
    writer.SetByteOrderToLittleEndian() if little else writer.SetByteOrderToBigEndian()
    if pieces > 1:
        writer.SetNumberOfPieces(pieces)
    assert writer.Write() == 1, path


def write_vtk(folder):
    for name, (make, ending, xml, legacy) in MESHES.items():
        mesh = make()
        write_xml(xml, mesh, folder / f"{name}_ascii.{ending}", 0, 0, False, True, True)
        for mode in ("base64", "raw", "encoded"):
            for packed in (False, True, "lz4"):
                for long in (False, True):
                    for little in (False, True):
                        words = [name, mode, {False: "plain", True: "zlib"}.get(packed, packed), "64" if long else "32", "le" if little else "be"]
                        path = folder / f"{'_'.join(words)}.{ending}"
                        write_xml(xml, mesh, path, 1 if mode == "base64" else 2, mode == "encoded", packed, long, little)
        if name in ("cells", "surface"):
            # VTK mixes up the data of strips and polygons where there are several pieces.
            plain = surface(strips=False) if name == "surface" else mesh
            write_xml(xml, plain, folder / f"{name}_pieces.{ending}", 2, 0, True, True, True, pieces=3)
        if legacy is None:
            continue
        for text in (True, False):
            for version in (42, 51):
                writer = legacy()
                writer.SetInputData(mesh)
                writer.SetFileVersion(version)
                writer.SetFileTypeToASCII() if text else writer.SetFileTypeToBinary()
                writer.SetFileName(str(folder / f"{name}_{'ascii' if text else 'binary'}_{version}.vtk"))
                assert writer.Write() == 1


def write_parts(folder):
    """Files that name other files: blocks inside blocks, pieces, and a list of one time."""
    inner = dress(pv.ImageData(dimensions=(3, 3, 3)).cast_to_unstructured_grid())
    wall, box = dress(pv.Plane(i_resolution=2, j_resolution=2)), dress(pv.ImageData(dimensions=(2, 3, 2), spacing=(0.5, 0.5, 0.5)))
    wall.point_data.remove("short")  # what a part lacks is left out
    blocks = pv.MultiBlock({"internal": inner, "boundary": pv.MultiBlock({"wall": wall, "box": box})})
    blocks.save(folder / "parts_blocks.vtm")
    head = '<?xml version="1.0"?>\n<VTKFile type="{}" version="0.1" byte_order="LittleEndian">\n'
    pieces = [unstructured(), unstructured()]
    for number, piece in enumerate(pieces):
        (folder / "parts").mkdir(exist_ok=True)
        piece.save(folder / "parts" / f"{number}.vtu")
    arrays = {"PointData": pieces[0].point_data, "CellData": pieces[0].cell_data}
    text = head.format("PUnstructuredGrid") + '<PUnstructuredGrid GhostLevel="0">\n'
    for part, data in arrays.items():
        text += f"<P{part}>"
        for name in data.keys():
            kind = {"f": "Float", "i": "Int", "u": "UInt"}[data[name].dtype.kind] + str(8 * data[name].dtype.itemsize)
            width = data[name].size // len(data[name])
            text += f'<PDataArray type="{kind}" Name="{name}" NumberOfComponents="{width}"/>'
        text += f"</P{part}>\n"
    text += '<PPoints><PDataArray type="Float32" NumberOfComponents="3"/></PPoints>\n'
    text += '<Piece Source="parts/0.vtu"/><Piece Source="parts/1.vtu"/>\n</PUnstructuredGrid></VTKFile>\n'
    (folder / "parts_pieces.pvtu").write_text(text)
    list_ = head.format("Collection") + "<Collection>" + "".join(
        f'<DataSet timestep="0.5" part="{number}" file="parts/{number}.vtu"/>' for number in range(2)) + "</Collection></VTKFile>"
    (folder / "parts_list.pvd").write_text(list_)


def whole(mesh):
    """A mesh of parts as one."""
    return mesh.combine(merge_points=False) if isinstance(mesh, pv.MultiBlock) else mesh


def solid():
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], np.float32)
    return meshio.Mesh(points, [("triangle", np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 4]]))])


def volume(with_data=True):
    grid = pv.ImageData(dimensions=(3, 3, 3)).cast_to_unstructured_grid()
    points = np.asarray(grid.points, float) + 0.01 * random.normal(size=(27, 3))
    voxels = grid.cells.reshape(-1, 9)[:, 1:][:, [0, 1, 3, 2, 4, 5, 7, 6]]
    squares = voxels[:4, :4]
    triangles = voxels[4:, :3]
    tetrahedra = voxels[4:, [0, 1, 3, 4]]
    cells = [("triangle", triangles), ("quad", squares), ("tetra", tetrahedra), ("hexahedron", voxels)]
    cell_data = {"gmsh:physical": [], "gmsh:geometrical": []}
    for number, (_, block) in enumerate(cells):
        cell_data["gmsh:physical"].append(np.full(len(block), 10 + number, np.int32))
        cell_data["gmsh:geometrical"].append(np.full(len(block), 1 + number, np.int32))
    mesh = meshio.Mesh(points, cells, cell_data=cell_data)
    if with_data:
        mesh.point_data["T"] = random.normal(size=27)
        mesh.cell_data["k"] = [random.normal(size=len(block)) for _, block in cells]
        mesh.point_data["U"] = random.normal(size=(27, 3))
    return mesh


def curved():
    """Second order, to see the order of nodes."""
    cells = []
    for kind, size in (("line3", 3), ("triangle6", 6), ("quad8", 8), ("quad9", 9), ("tetra10", 10), ("hexahedron20", 20),
                       ("hexahedron27", 27)):
        cells.append((kind, np.array([random.permutation(40)[:size] for _ in range(2)])))
    numbers = [np.full(2, 1 + number, np.int32) for number in range(len(cells))]
    marks = {"gmsh:physical": numbers, "gmsh:geometrical": numbers}
    return meshio.Mesh(random.random((40, 3)), cells, cell_data=marks)


def write_meshio(folder):
    mesh = volume()
    mesh.write(folder / "meshio_ascii.vtu", binary=False)
    mesh.write(folder / "meshio_plain.vtu", compression=None)
    mesh.write(folder / "meshio_zlib.vtu", compression="zlib")
    for binary in (False, True):
        word = "binary" if binary else "ascii"
        for version in ("vtk42", "vtk51"):
            meshio.write(folder / f"meshio_{version}_{word}.vtk", mesh, file_format=version, binary=binary)
        solid().write(folder / f"meshio_{word}.stl", binary=binary)
        for version in ("2.2", "4.0", "4.1"):
            for name, marked in (("meshio", volume()), ("curved", curved())):
                if version == "2.2":
                    marked.cell_data.pop("k", None)  # meshio does not read back what it writes here
                if version == "4.1":
                    tags = [[block.dim, 1 + number] for number, block in enumerate(marked.cells)]
                    marked.point_data["gmsh:dim_tags"] = np.array(sorted((tags * 40)[: len(marked.points)]))
                meshio.gmsh.write(folder / f"{name}_{version}_{word}.msh", marked, version, binary)
    solid().write(folder / "meshio.obj")
    pv.Sphere(theta_resolution=6, phi_resolution=5).save(folder / "pyvista_binary.stl")
    pv.Sphere(theta_resolution=6, phi_resolution=5).save(folder / "pyvista_ascii.stl", binary=False)


def write_gmsh(folder):
    """Files of Gmsh itself, where it is installed."""
    try:
        import gmsh
    except (ImportError, OSError):
        return
    for degree in (1, 2):
        gmsh.initialize()
        gmsh.option.setNumber("General.Terminal", 0)
        body = gmsh.model.occ.addBox(0, 0, 0, 1, 1, 2)
        hole = gmsh.model.occ.addSphere(0.5, 0.5, 1, 0.3)
        [(_, volume)], _ = gmsh.model.occ.cut([(3, body)], [(3, hole)])
        gmsh.model.occ.synchronize()
        sides = [tag for _, tag in gmsh.model.getBoundary([(3, volume)], oriented=False)]
        gmsh.model.addPhysicalGroup(3, [volume], 7, "fluid")
        gmsh.model.addPhysicalGroup(2, sides[:3], 8, "inlet")
        gmsh.model.addPhysicalGroup(2, sides[3:], 9, "wall")
        gmsh.option.setNumber("Mesh.MeshSizeMin", 0.6)
        gmsh.model.mesh.generate(3)
        gmsh.model.mesh.setOrder(degree)
        for version, binary in ((2.2, 0), (2.2, 1), (4.0, 0), (4.1, 0), (4.1, 1)):  # Gmsh has no binary 4.0
            gmsh.option.setNumber("Mesh.MshFileVersion", version)
            gmsh.option.setNumber("Mesh.Binary", binary)
            gmsh.write(str(folder / f"gmsh{degree}_{version}_{binary}.msh"))
        gmsh.finalize()


def small(mesh):
    """The same few numbers on every mesh: what `claims/meshes.rs` expects."""
    mesh.point_data["p"] = np.arange(mesh.n_points, dtype=np.float32) / 4
    mesh.point_data["U"] = np.arange(3.0 * mesh.n_points).reshape(-1, 3) - 0.1
    mesh.cell_data["region"] = np.arange(mesh.n_cells, dtype=np.int32) - 1
    mesh.field_data["TimeValue"] = np.array([0.25])
    return mesh


def write_fixtures(folder):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1.5]], float)
    cells = small(pv.UnstructuredGrid(np.array([4, 0, 1, 2, 3, 3, 1, 2, 4]), np.array([10, 5], np.uint8), corners))
    polygons = pv.PolyData(corners, faces=[3, 0, 2, 1, 3, 1, 2, 4])
    axes = np.arange(3.0), np.array([0.0, 0.5]), np.array([1.0])
    grid = pv.RectilinearGrid(*axes)
    meshes = {
        "cells": (cells, "vtu"),
        "surface": (small(polygons), "vtp"),
        "image": (small(pv.ImageData(dimensions=(3, 2, 1), spacing=(1, 0.5, 1), origin=(0, 0, 1))), "vti"),
        "rectilinear": (small(grid), "vtr"),
        "structured": (small(pv.RectilinearGrid(*axes).cast_to_structured_grid()), "vts"),
    }
    for name, (mesh, ending) in meshes.items():
        xml, legacy = MESHES[name][2:]
        write_xml(xml, mesh, folder / f"{name}_ascii.{ending}", 0, 0, False, True, True)
        write_xml(xml, mesh, folder / f"{name}_raw_zlib_be.{ending}", 2, 0, True, False, False)
        if name == "cells":
            write_xml(xml, mesh, folder / f"{name}_base64.{ending}", 1, 0, False, False, True)
            write_xml(xml, mesh, folder / f"{name}_base64_zlib.{ending}", 1, 0, True, True, True)
            write_xml(xml, mesh, folder / f"{name}_encoded.{ending}", 2, 1, True, True, True)
            write_xml(xml, mesh, folder / f"{name}_pieces.{ending}", 0, 0, False, True, True, pieces=2)
            write_xml(xml, mesh, folder / f"{name}_raw_lz4.{ending}", 2, 0, "lz4", True, True)
            (folder / "parts.vtm").write_text(
                '<?xml version="1.0"?>\n<VTKFile type="vtkMultiBlockDataSet" version="1.0">\n<vtkMultiBlockDataSet>\n'
                '<Block index="0" name="all"><DataSet index="0" name="cells" file="cells_ascii.vtu"/></Block>\n'
                '<DataSet index="1" name="surface" file="surface_ascii.vtp"/>\n</vtkMultiBlockDataSet>\n</VTKFile>\n')
            meshio.write_points_cells(folder / "meshio.vtu", corners, [("tetra", [[0, 1, 2, 3]]), ("triangle", [[1, 2, 4]])])
        for version in (42, 51):
            writer = legacy()
            writer.SetInputData(mesh)
            writer.SetFileVersion(version)
            writer.SetFileTypeToASCII() if version == 42 else writer.SetFileTypeToBinary()
            writer.SetFileName(str(folder / f"{name}_{version}.vtk"))
            assert writer.Write() == 1
    write_xml(vtk.vtkXMLUnstructuredGridWriter, polyhedra(), folder / "polyhedra.vtu", 0, 0, False, True, True)
    plain = meshio.Mesh(corners, [("triangle", np.array([[0, 2, 1], [1, 2, 4]]))])
    plain.write(folder / "surface_ascii.stl", binary=False)
    plain.write(folder / "surface_binary.stl", binary=True)
    plain.write(folder / "surface.obj")
    marks = {"gmsh:physical": [np.array([7]), np.array([8])], "gmsh:geometrical": [np.array([1]), np.array([2])]}
    for version in ("2.2", "4.0", "4.1"):
        for binary in (False, True):
            mesh = meshio.Mesh(corners, [("tetra", [[0, 1, 2, 3]]), ("triangle", [[1, 2, 4]])], cell_data=marks)
            if version == "4.1":
                mesh.point_data["gmsh:dim_tags"] = np.array([[2, 2]] * 2 + [[3, 1]] * 3)
            meshio.gmsh.write(folder / f"cells_{version}_{'binary' if binary else 'ascii'}.msh", mesh, version, binary)


def same(what, ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, f"{what}: shapes {ours.shape} and {theirs.shape}"
    assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"), f"{what}: numbers differ"


def sorted_faces(mesh, cell):
    return sorted(tuple(sorted(face.point_ids)) for face in mesh.get_cell(cell).faces)


def compare_vtk(ours, theirs):
    """As VTK reads both; lattices may have become explicit cells."""
    if type(ours) is not type(theirs):
        theirs = theirs.cast_to_unstructured_grid()
        ours = ours if isinstance(ours, pv.UnstructuredGrid) else ours.cast_to_unstructured_grid()
    if isinstance(ours, pv.StructuredGrid):
        same("dimensions", ours.dimensions, theirs.dimensions)
    if theirs.n_points:
        close = np.abs(ours.points - theirs.points).max()
        exact = not isinstance(theirs, pv.ImageData)
        assert close == 0 or not exact and close < 1e-12, f"points differ by {close}"
    assert (ours.n_points, ours.n_cells) == (theirs.n_points, theirs.n_cells), f"{ours} {theirs}"
    for cell in range(theirs.n_cells):
        one, other = ours.get_cell(cell), theirs.get_cell(cell)
        if other.type in (8, 11) and one.type != other.type:  # a pixel is a quad, a voxel a hexahedron
            assert sorted(one.point_ids) == sorted(other.point_ids) and {8: 9, 11: 12}[int(other.type)] == one.type
            assert np.allclose(one.bounds, other.bounds) and one.n_faces == other.n_faces
        elif int(other.type) == 42:
            assert one.type == other.type and sorted_faces(ours, cell) == sorted_faces(theirs, cell), f"cell {cell}"
        else:
            assert one.type == other.type, f"cell {cell}: types {one.type} and {other.type}"
            assert one.point_ids == other.point_ids, f"cell {cell}: {one.point_ids} and {other.point_ids}"
    for what in ("point_data", "cell_data", "field_data"):
        one, other = getattr(ours, what), getattr(theirs, what)
        names = {name for name in other.keys() if np.asarray(other[name]).dtype.kind in "fiu"}
        names -= {"GroupIds", "STLSolidLabeling"}  # made up by VTK's readers
        assert set(one.keys()) == names, f"{what}: {one.keys()} and {names}"
        for name in names:
            same(f"{what} {name}", one[name], other[name])
            assert np.asarray(one[name]).dtype == np.asarray(other[name]).dtype, f"{what} {name}: types differ"


def by_type(mesh):
    found = {}
    for block in mesh.cells:
        found.setdefault(block.type, []).extend(map(tuple, block.data))
    return found


def cell_values(mesh, name):
    found = {}
    for block, values in zip(mesh.cells, mesh.cell_data[name]):
        found.setdefault(block.type, []).extend(np.asarray(values).ravel().tolist())
    return found


def compare_meshio(ours, theirs):
    same("points", ours.points, theirs.points)
    assert by_type(ours) == by_type(theirs), "cells differ"
    for name in set(theirs.point_data) - {"gmsh:dim_tags"}:
        same(name, ours.point_data[name].ravel(), theirs.point_data[name].ravel())
    for name in theirs.cell_data:
        assert cell_values(ours, name) == cell_values(theirs, name), f"{name} differs"


def compare(folder):
    count = 0
    originals = {path.name: path for path in folder.iterdir() if path.is_file()}
    read = {}
    for made in sorted((folder / "made").iterdir()):
        name = next(name for name in originals if made.name.startswith(name + "."))
        path = originals[name]
        try:
            if path.suffix == ".msh":
                if name.startswith("gmsh"):  # meshio reads not every file of Gmsh; all hold one mesh
                    path = folder / f"{name[:5]}_4.1_{path.stem[-1]}.msh"
                compare_meshio(meshio.read(made), meshio.read(path))
            else:
                if name not in read:
                    read[name] = whole(pv.read(path))
                ours = pv.read(made)
                if name.startswith("parts"):
                    numbers = ours.cell_data.pop("block")
                    assert np.all(np.diff(numbers) >= 0) and numbers[-1] > 0, "numbers of parts"
                    ours.field_data.clear(), read[name].field_data.clear()
                compare_vtk(ours, read[name])
                if name.startswith("meshio") and path.suffix in (".vtu", ".vtk"):  # meshio reads no PolyData
                    compare_meshio(meshio.read(made), meshio.read(path))
        except (Exception, SystemExit) as problem:  # meshio exits where it cannot read
            told = " ".join(str(problem).split())
            raise SystemExit(f"{made.name}: {type(problem).__name__}: {told}") from problem
        count += 1
    print(f"{count} files compared")


if __name__ == "__main__":
    job, folder = sys.argv[1], Path(sys.argv[2])
    if job == "write":
        write_vtk(folder)
        write_parts(folder)
        write_meshio(folder)
        write_gmsh(folder)
    elif job == "fixtures":
        write_fixtures(folder)
    else:
        compare(folder)
