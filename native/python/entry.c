/* Calls an executor with NumPy arrays: check, make the results, run. What it cannot take it leaves to Python, by None.
 *
 * For Python's stable ABI, so that one build serves every version from 3.10 on; NumPy's is stable from 1.19 on.
 */
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

#include "blocks.h"
#include "executor.h"

#define NAME "stablehlo_py.entry"
#define FEW 32 /* pointers that stand on the stack */
#define LARGE 16384 /* bytes: smaller results are NumPy's own, which takes a third of the time */

typedef struct {
    PyArray_Descr *dtype;
    npy_intp bytes;
    int rank;
    npy_intp *shape;
    Py_ssize_t place; /* of a result: the argument that becomes it, or -1 */
} array_type;

typedef struct {
    shlo_executor *executor;
    int release; /* whether a call takes long enough to let other Python threads run */
    Py_ssize_t arguments, results;
    array_type types[]; /* of the arguments, then of the results */
} entry;

static int matches(PyObject *object, const array_type *type) {
    if (!PyArray_CheckExact(object)) return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_DESCR(array) != type->dtype || PyArray_NDIM(array) != type->rank) return 0;
    if (!PyArray_ISCARRAY_RO(array)) return 0; /* contiguous, aligned, of the machine's byte order */
    for (int i = 0; i < type->rank; ++i)
        if (PyArray_DIM(array, i) != type->shape[i]) return 0;
    return 1;
}

/* Whether an argument may become a result: it can be written, and no other argument would see it. */
static int is_apart(PyObject *const *given, void *const *data, Py_ssize_t donor, const entry *entry) {
    if (!PyArray_ISWRITEABLE((PyArrayObject *)given[donor])) return 0;
    const char *begin = data[donor], *end = begin + entry->types[donor].bytes;
    for (Py_ssize_t i = 0; i < entry->arguments; ++i) {
        const char *other = data[i];
        if (i != donor && other < end && begin < other + entry->types[i].bytes) return 0;
    }
    return 1;
}

static int takes(const entry *entry, PyObject *const *given, void **data) {
    for (Py_ssize_t i = 0; i < entry->arguments; ++i) {
        if (!matches(given[i], entry->types + i)) return 0;
        data[i] = PyArray_DATA((PyArrayObject *)given[i]);
    }
    for (Py_ssize_t i = entry->arguments; i < entry->arguments + entry->results; ++i)
        if (entry->types[i].place >= 0 && !is_apart(given, data, entry->types[i].place, entry)) return 0;
    return 1;
}

static void return_block(PyObject *capsule) {
    shlo_block_return(PyCapsule_GetPointer(capsule, NULL), (size_t)PyCapsule_GetContext(capsule));
}

/* An array in a recycled block, which the capsule under it gives back when the last view of it dies. */
static PyObject *large_array(const array_type *type) {
    void *block = shlo_block_take((size_t)type->bytes);
    if (!block) return PyErr_NoMemory();
    PyObject *owner = PyCapsule_New(block, NULL, return_block);
    if (!owner) {
        shlo_block_return(block, (size_t)type->bytes);
        return NULL;
    }
    PyCapsule_SetContext(owner, (void *)type->bytes);
    Py_INCREF(type->dtype);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, type->dtype, type->rank, type->shape, NULL, block,
                                          NPY_ARRAY_CARRAY, NULL);
    if (!made) {
        Py_DECREF(owner);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)made, owner)) { /* takes the owner, also when it fails */
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

static PyObject *result_array(const array_type *type, PyObject *const *given) {
    if (type->place >= 0) {
        Py_INCREF(given[type->place]);
        return given[type->place];
    }
    if (type->bytes >= LARGE) return large_array(type);
    Py_INCREF(type->dtype);
    return PyArray_NewFromDescr(&PyArray_Type, type->dtype, type->rank, type->shape, NULL, NULL, 0, NULL);
}

static PyObject *run(const entry *entry, PyObject *const *given, void **arguments, void **results, PyObject *made) {
    const array_type *types = entry->types + entry->arguments;
    for (Py_ssize_t i = 0; i < entry->results; ++i) {
        PyObject *array = result_array(types + i, given);
        if (!array || PyTuple_SetItem(made, i, array)) return NULL;
        results[i] = PyArray_DATA((PyArrayObject *)array);
    }
    int32_t status;
    if (entry->release) {
        PyThreadState *state = PyEval_SaveThread();
        status = shlo_executor_run(entry->executor, arguments, results);
        PyEval_RestoreThread(state);
    } else {
        status = shlo_executor_run(entry->executor, arguments, results);
    }
    if (status != SHLO_OK) return PyLong_FromLong(status);
    Py_INCREF(made);
    return made;
}

static PyObject *call(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const entry *entry = PyCapsule_GetPointer(self, NAME);
    if (!entry) return NULL;
    if (count != entry->arguments) Py_RETURN_NONE;
    Py_ssize_t pointers = count + entry->results;
    void *few[FEW], **arguments = pointers <= FEW ? few : PyMem_Malloc((size_t)pointers * sizeof *arguments);
    if (!arguments) return PyErr_NoMemory();
    PyObject *returned = NULL;
    if (!takes(entry, given, arguments)) {
        Py_INCREF(Py_None);
        returned = Py_None;
    } else {
        PyObject *made = PyTuple_New(entry->results);
        if (made) {
            returned = run(entry, given, arguments, arguments + count, made);
            Py_DECREF(made);
        }
    }
    if (arguments != few) PyMem_Free(arguments);
    return returned;
}

static PyMethodDef call_method = {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL,
                                  "call(*arrays) -> tuple of results, a status that is not 0, or None: not mine"};

static void free_entry(entry *entry) {
    for (Py_ssize_t i = 0; i < entry->arguments + entry->results; ++i) {
        Py_XDECREF(entry->types[i].dtype);
        PyMem_Free(entry->types[i].shape);
    }
    PyMem_Free(entry);
}

static void free_capsule(PyObject *capsule) { free_entry(PyCapsule_GetPointer(capsule, NAME)); }

/* (dtype, shape) as an array_type. */
static int read_type(PyObject *pair, array_type *type) {
    PyObject *dtype, *shape;
    if (!PyArg_ParseTuple(pair, "O!O!", &PyArrayDescr_Type, &dtype, &PyTuple_Type, &shape)) return -1;
    type->rank = (int)PyTuple_Size(shape);
    type->shape = PyMem_Malloc((size_t)(type->rank + 1) * sizeof *type->shape);
    if (!type->shape) {
        PyErr_NoMemory();
        return -1;
    }
    Py_INCREF(dtype);
    type->dtype = (PyArray_Descr *)dtype;
    type->bytes = (npy_intp)PyDataType_ELSIZE(type->dtype);
    for (int i = 0; i < type->rank; ++i) {
        type->shape[i] = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
        if (PyErr_Occurred()) return -1;
        type->bytes *= type->shape[i];
    }
    return 0;
}

/* make(executor, release, arguments, results, places): the call of an executor, which must outlive it. */
static PyObject *make(PyObject *module, PyObject *given) {
    (void)module;
    Py_ssize_t executor;
    int release;
    PyObject *arguments, *results, *places;
    if (!PyArg_ParseTuple(given, "npO!O!O!", &executor, &release, &PyTuple_Type, &arguments, &PyTuple_Type, &results,
                          &PyTuple_Type, &places))
        return NULL;
    Py_ssize_t inputs = PyTuple_Size(arguments), count = inputs + PyTuple_Size(results);
    entry *made = PyMem_Calloc(1, sizeof *made + (size_t)count * sizeof *made->types);
    if (!made) return PyErr_NoMemory();
    made->executor = (shlo_executor *)executor;
    made->release = release;
    made->arguments = inputs;
    made->results = count - inputs;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *pair = i < inputs ? PyTuple_GetItem(arguments, i) : PyTuple_GetItem(results, i - inputs);
        made->types[i].place = -1;
        if (read_type(pair, made->types + i)) {
            free_entry(made);
            return NULL;
        }
        if (i < inputs) continue;
        PyObject *place = PyTuple_GetItem(places, i - inputs);
        made->types[i].place = place ? PyLong_AsSsize_t(place) : -1;
        if (PyErr_Occurred() || made->types[i].place >= inputs) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "a place that is no argument");
            free_entry(made);
            return NULL;
        }
    }
    PyObject *capsule = PyCapsule_New(made, NAME, free_capsule);
    if (!capsule) {
        free_entry(made);
        return NULL;
    }
    PyObject *function = PyCFunction_NewEx(&call_method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}

static PyObject *version(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromLongLong(shlo_runtime_version());
}

static PyMethodDef methods[] = {
    {"make", make, METH_VARARGS, "make(executor, release, arguments, results, places), the types as (dtype, shape) -> call"},
    {"version", version, METH_NOARGS, "shlo_runtime_version() of the library that calls go to"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "stablehlo_entry", NULL, -1, methods, NULL, NULL, NULL,
                                        NULL};

PyMODINIT_FUNC PyInit_stablehlo_entry(void) {
    import_array();
    return PyModule_Create(&definition);
}
